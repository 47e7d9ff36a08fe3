#include "runmanager/terminal/terminal_progress.h"

#include "runmanager/terminal/ended_line.h"
#include "tests/support/screen.h"
#include "tests/support/test.h"

namespace sweep::terminal_progress_test {

using testing::Screen;

struct Clock {
  double seconds = 10;
  std::function<double()> function() {
    return [this] { return seconds; };
  }
};

RunRecord record(const std::string& name, RunStatus status, double accuracy = 0.5) {
  RunRecord run;
  run.name = name;
  run.status = status;
  run.params = {{"lr", name}, {"device", std::string("cpu")}};
  if (status == RunStatus::kFailed) run.error = "broken";
  if (status == RunStatus::kCompleted)
    run.epochs = {
        {1,
         {{"loss", 0.75}, {"accuracy", 0.25}, {"validation_loss", 0.5}, {"validation_accuracy", accuracy}}}};
  return run;
}

TEST(Progress, ShowsRunEpochSpeedsLossAccuracyAndTimesLeft) {
  Screen screen(120);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "fashion", 4, 4 * 2 * 1000.0);
  progress.start_run(1, record("0.1", RunStatus::kRunning));
  progress.report(1, RunPlan{.name = "lr=0.1", .epochs = 2, .batches = 10, .samples = 1000});
  progress.report(1, TrainedBatches{.epoch = 1});
  for (int i = 0; i < 5; ++i) {
    clock.seconds += 1;
    progress.report(1, TrainedBatches{1, 1, {.loss = 50, .correct = 80, .samples = 100}});
  }
  ASSERT_EQ(screen.lines().size(), 3u) << screen.text();
  // 500 of 8000 samples took 5 s.
  for (const char* part : {"fashion", "0/4 runs", "  6%", "1 m 15 s left", "5 s so far", "100 img/s"})
    EXPECT_THAT(screen.lines()[0], HasSubstr(part));
  for (const char* title : {"lr", "device", "epoch", "loss", "acc", "it/s", "img/s", "left"})
    EXPECT_THAT(screen.lines()[1], HasSubstr(title));
  // 5 of the epoch's 10 batches, and of the run's 20, took 5 s.
  for (const char* part : {"0.1", "cpu", "1/2", " 50%", "0.5000", "80.00%", "15 s", "1.00", "100"})
    EXPECT_THAT(screen.lines()[2], HasSubstr(part));
}

TEST(Progress, FollowsAProgramThatReportsWholeEpochsOnly) {
  Screen screen(120);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "own", 1, 20);
  progress.report(1, RunPlan{.name = "a", .epochs = 20, .batches = 1, .samples = 1});
  for (int epoch = 1; epoch <= 5; ++epoch) {
    clock.seconds += 1;
    progress.report(1, EpochRecord{epoch, {{"loss", 1.0 / epoch}}});
  }
  progress.report(1, RunPhase{"running"});
  EXPECT_THAT(screen.lines().at(0), HasSubstr(" 25%"));
  EXPECT_THAT(screen.lines().at(1), Not(HasSubstr("img/s")));
  EXPECT_THAT(screen.lines().at(2), AllOf(HasSubstr("6/20"), HasSubstr("0.2000"), HasSubstr("15 s")));
}

// Epochs of a tenth of a second, half of it validation: each alone would have another speed.
TEST(Progress, SpeedsAreThoseOfASecondOfTrainingAtLeast) {
  Screen screen(120);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "fashion", 1, 1e6);
  progress.report(1, RunPlan{.name = "a", .epochs = 100, .batches = 1, .samples = 10});
  const auto epoch = [&](int number, double seconds) {
    progress.report(1, TrainedBatches{.epoch = number});
    clock.seconds += seconds;
    progress.report(1, TrainedBatches{number, 1, {.loss = 1, .correct = 1, .samples = 10}});
    progress.report(1, RunPhase{"validation"});
    clock.seconds += 0.05;
  };
  for (int number = 1; number <= 19; ++number) epoch(number, 0.05);
  EXPECT_THAT(screen.lines().at(2), Not(HasSubstr(" 200"))) << "only 0.95 s of training";
  epoch(20, 0.0501);
  progress.report(1, TrainedBatches{.epoch = 21});
  clock.seconds += 0.2;
  progress.report(1, TrainedBatches{21, 1, {.loss = 1, .correct = 1, .samples = 10}});
  EXPECT_THAT(screen.lines().at(2), HasSubstr("20.0    200")) << "the slow batch belongs to the next second";
}

TEST(Progress, NamesAPhaseThatLasts) {
  Screen screen(100);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 1, 1e6);
  progress.report(1, RunPlan{.name = "a", .epochs = 9, .batches = 1, .samples = 10});
  progress.report(1, TrainedBatches{.epoch = 1});
  progress.report(1, TrainedBatches{1, 1, {.loss = 1, .correct = 1, .samples = 10}});
  clock.seconds += 1;
  progress.report(1, RunPhase{"validation"});
  EXPECT_THAT(screen.text(), Not(HasSubstr("validation")));
  clock.seconds += 0.5;
  progress.report(1, RunPhase{"validation"});
  EXPECT_THAT(screen.text(), HasSubstr("validation"));
}

TEST(Progress, NeverDrawsALineWiderThanTheTerminal) {
  for (int width = 20; width < 160; width += 7) {
    Screen screen(width);
    Clock clock;
    TerminalProgress progress(screen.terminal(), clock.function(), false, "fashion", 400, 1e9);
    progress.report(
        1, RunPlan{.name = std::string(100, 'n'), .epochs = 100, .batches = 1000, .samples = 100000});
    progress.report(1, TrainedBatches{.epoch = 42});
    clock.seconds += 100;
    progress.report(1, TrainedBatches{42, 1, {.loss = 5e6, .correct = 80, .samples = 100}});
    for (const std::string& line : screen.lines()) EXPECT_LT(display_width(line), width) << line;
  }
}

TEST(Progress, LeavesFinishedRunsAboveTheTableAndErasesTheTable) {
  Screen screen(100);
  Clock clock;
  {
    TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 3, 10);
    progress.report(1, RunPlan{.name = "a", .epochs = 1, .batches = 1, .samples = 10});
    progress.report(1, TrainedBatches{.epoch = 1});
    progress.report(1, TrainedBatches{1, 1, {.loss = 1, .correct = 1, .samples = 10}});
    progress.end_run(1, record("a", RunStatus::kFailed));
    progress.end_run(2, record("b", RunStatus::kCompleted));
    progress.report(3, RunPlan{.name = "c", .epochs = 1, .batches = 1, .samples = 10});
    const std::vector<std::string> lines = screen.lines();
    ASSERT_EQ(lines.size(), 5u) << screen.text();
    EXPECT_EQ(lines[0], "✗ a  failed: broken");
    EXPECT_THAT(lines[1], HasSubstr("★ b  loss 0.7500  acc 25.00%  val loss 0.5000  val acc 50.00%"));
    EXPECT_THAT(lines[2], HasSubstr("2/3 runs"));
    EXPECT_THAT(lines[2], HasSubstr("1 failed"));
    EXPECT_THAT(lines[4], HasSubstr("1/1"));
  }
  ASSERT_EQ(screen.lines().size(), 2u);
}

TEST(Progress, KeepsTheBestRunInSight) {
  Screen screen(100);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 3, 10);
  progress.end_run(1, record("better", RunStatus::kCompleted, 0.75));
  progress.end_run(2, record("worse", RunStatus::kCompleted, 0.5));
  progress.pass_time();
  const std::vector<std::string> lines = screen.lines();
  ASSERT_EQ(lines.size(), 4u) << screen.text();
  EXPECT_THAT(lines[0], HasSubstr("★ better"));
  EXPECT_THAT(lines[1], HasSubstr("✓ worse"));
  EXPECT_THAT(lines[3], HasSubstr("★ better"));
}

TEST(Progress, TellsOnceWhyRunsAreSkipped) {
  Screen screen(100);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 3, 10);
  for (std::size_t number = 1; number <= 3; ++number) {
    RunRecord run = record("a", RunStatus::kSkipped);
    run.error = number < 3 ? "no device" : "another reason";
    progress.end_run(number, run);
  }
  progress.pass_time();
  ASSERT_EQ(screen.lines().size(), 3u) << screen.text();
  EXPECT_THAT(screen.lines()[2], HasSubstr("3 skipped"));
}

TEST(Progress, CutsParametersThatDoNotTellRunsApartFirst) {
  for (const int width : {60, 80, 200}) {
    Screen screen(width);
    Clock clock;
    TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 2, 1e6);
    for (std::size_t number = 1; number <= 2; ++number) {
      RunRecord run;
      run.name = "lr=" + std::to_string(number) + ",same_for_all_of_the_runs=0.5";
      run.params = {{"lr", static_cast<std::int64_t>(number)}, {"same_for_all_of_the_runs", 0.5}};
      progress.start_run(number, run);
      progress.report(number, RunPlan{.name = run.name, .epochs = 100, .batches = 100, .samples = 100});
      progress.report(number, TrainedBatches{.epoch = 42});
      clock.seconds += 20;
      progress.report(number, TrainedBatches{42, 1, {.loss = 50, .correct = 80, .samples = 100}});
    }
    progress.pass_time();
    const std::vector<std::string> lines = screen.lines();
    ASSERT_EQ(lines.size(), 4u) << screen.text();
    EXPECT_THAT(lines[1], HasSubstr("lr")) << width;
    EXPECT_EQ(lines[1].find("same_for") != std::string::npos, width == 200);
    EXPECT_THAT(lines[2], HasSubstr("42/100")) << width;
    EXPECT_THAT(lines[2], HasSubstr("80.00%")) << width;
  }
}

TEST(Progress, CutsTheLossBeforeWhatTellsRunsApart) {
  for (const int width : {40, 45, 50}) {
    Screen screen(width);
    Clock clock;
    TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 2, 1e6);
    for (std::size_t number = 1; number <= 2; ++number) {
      RunRecord run;
      run.name = "lr=" + std::to_string(number);
      run.params = {{"lr", static_cast<std::int64_t>(number)}};
      progress.start_run(number, run);
      progress.report(number, RunPlan{.name = run.name, .epochs = 6000, .batches = 100, .samples = 100});
      progress.report(number, TrainedBatches{.epoch = 42});
      clock.seconds += 20;
      progress.report(number, TrainedBatches{42, 1, {.loss = 50, .correct = 80, .samples = 100}});
    }
    progress.pass_time();
    EXPECT_THAT(screen.lines().at(1), AllOf(HasSubstr("lr"), HasSubstr("acc"))) << width;
  }
}

TEST(Progress, ShowsOneParameterOfASingleRunEvenIfThereIsLittleRoom) {
  Screen screen(60);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 2, 1e6);
  RunRecord run;
  run.name = "momentum=0.5,lr=0.125";
  run.params = {{"constant", true}, {"momentum", 0.5}, {"lr", 0.125}};
  progress.start_run(1, run);
  progress.report(1, RunPlan{.name = run.name, .epochs = 100, .batches = 9, .samples = 9});
  progress.report(1, TrainedBatches{.epoch = 1});
  clock.seconds += 20;
  progress.report(1, TrainedBatches{1, 1, {.loss = 5, .correct = 8, .samples = 10}});
  EXPECT_THAT(screen.text(), HasSubstr("momentum"));
  EXPECT_THAT(screen.text(), Not(HasSubstr("constant")));
}

TEST(Progress, NamesAFinishedRunByItsValuesWhereThereIsLittleRoom) {
  RunRecord run = record("lr=0.125,batch_size=1000,shuffle=false", RunStatus::kCompleted);
  run.params = {
      {"lr", 0.125}, {"batch_size", std::int64_t{1000}}, {"shuffle", false}, {"seed", std::int64_t{7}}};
  for (const int width : {200, 50}) {
    Screen screen(width);
    Clock clock;
    TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 2, 1e6);
    progress.end_run(1, run);
    const std::string line = screen.lines().at(0);
    EXPECT_THAT(line, HasSubstr(width == 200 ? run.name + "  loss" : "★ 0.125, 1000, false  ")) << width;
    EXPECT_THAT(line, HasSubstr("val acc 50.00%")) << width;
  }
}

TEST(Progress, TakesAQuarterOfTheScreenAtMost) {
  Screen screen(100, 40);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 100, 1e6);
  for (std::size_t number = 1; number <= 64; ++number)
    progress.report(number, RunPlan{.name = std::to_string(number), .epochs = 1, .batches = 1, .samples = 1});
  clock.seconds += 1;
  progress.pass_time();
  ASSERT_EQ(screen.lines().size(), 10u);
  EXPECT_EQ(screen.lines().back(), "  and 57 more runs in training");
}

TEST(Progress, RedrawsAtMostTenTimesASecond) {
  Screen screen(100);
  Clock clock;
  TerminalProgress progress(screen.terminal(), clock.function(), false, "s", 1, 1e6);
  progress.report(1, RunPlan{.name = "a", .epochs = 1, .batches = 100000, .samples = 1000000});
  progress.report(1, TrainedBatches{.epoch = 1});
  for (int i = 0; i < 10000; ++i) {
    clock.seconds += 0.0002;
    progress.report(1, TrainedBatches{1, 1, {.loss = 1.0 * i, .correct = 1, .samples = 10}});
  }
  EXPECT_GE(screen.writes, 15u);
  EXPECT_LE(screen.writes, 21u);
}

TEST(Progress, WritesPlainLinesInALog) {
  std::string log;
  Clock clock;
  Terminal terminal;
  terminal.write = [&log](std::string_view text) { log += text; };
  TerminalProgress progress(terminal, clock.function(), false, "s", 2, 10);
  progress.report(1, RunPlan{.name = "a", .epochs = 1, .batches = 1, .samples = 10});
  progress.report(1, TrainedBatches{.epoch = 1});
  progress.report(1, TrainedBatches{1, 1, {.loss = 1, .correct = 1, .samples = 10}});
  progress.report(
      1, EpochRecord{1, {{"loss", 0.5}, {"accuracy", 0.25}, {"epoch_seconds", 2}, {"images_per_second", 5}}});
  progress.end_run(1, record("a", RunStatus::kCompleted));
  progress.end_run(2, record("b", RunStatus::kFailed));
  EXPECT_EQ(log,
            "[1/2] a  epoch 1/1  loss 0.5000  acc 25.00%  2.00 s  5.00 img/s\n"
            "[2/2] b  failed: broken\n");
}

TEST(Progress, SendsNoColoursUnlessWanted) {
  std::string sent;
  Clock clock;
  Terminal terminal;
  terminal.interactive = true;
  terminal.unicode = false;
  terminal.write = [&sent](std::string_view text) { sent += text; };
  {
    TerminalProgress progress(terminal, clock.function(), false, "s", 1, 10);
    progress.report(1, RunPlan{.name = "a", .epochs = 1, .batches = 1, .samples = 10});
    progress.report(1, TrainedBatches{1, 1, {.loss = 1, .correct = 1, .samples = 10}});
  }
  for (std::size_t i = sent.find("\x1b["); i != std::string::npos; i = sent.find("\x1b[", i + 1)) {
    EXPECT_NE(sent[sent.find_first_not_of("0123456789;", i + 2)], 'm');
  }
  EXPECT_TRUE(
      std::all_of(sent.begin(), sent.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST(MetricsText, EscapesNamesThatWouldColourTheTerminal) {
  EXPECT_EQ(metrics_text({1, {{"\x1b[31mred\nx", 1.0}}}), "\\u001b[31mred\\nx 1.0000");
}

}  // namespace sweep::terminal_progress_test
