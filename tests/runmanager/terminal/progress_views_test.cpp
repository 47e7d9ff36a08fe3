#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/progress.h"
#include "tests/support/screen.h"

namespace sweep::progress_views_test {

using testing::Screen;

// A live table, the screen that it is on, and its clock.
struct Live {
  Screen screen;
  double seconds = 10;
  std::unique_ptr<Progress> table;
  Progress& progress;

  explicit Live(int width, std::size_t runs = 1, double work = 1e6, int height = 24)
      : screen(width, height),
        table(make_progress({.terminal = screen.terminal(),
                             .clock = [this] { return seconds; },
                             .sweep = "fashion",
                             .runs = runs,
                             .work = work})),
        progress(*table) {}

  std::string line(std::size_t index) const { return screen.lines().at(index); }
  // A run that is in its first epoch, or a later one.
  void begin(std::size_t number, const std::string& name, int epochs, std::size_t batches,
             std::size_t samples, int epoch = 1) {
    progress.report(number, RunPlan{.name = name, .epochs = epochs, .batches = batches, .samples = samples});
    begin_epoch(number, epoch);
  }
  void begin_epoch(std::size_t number, int epoch) { progress.report(number, TrainedBatches{.epoch = epoch}); }
  // A batch of which four fifths are right.
  void train(std::size_t number, int epoch, double took, std::int64_t samples = 100, double loss = 0.5) {
    seconds += took;
    const auto size = static_cast<double>(samples);
    progress.report(
        number,
        TrainedBatches{epoch, 1, {.loss = loss * size, .correct = samples * 4 / 5, .samples = samples}});
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
  Live live(120, 4, 4 * 2 * 1000.0);
  live.progress.start_run(1, record("0.1", RunStatus::kRunning));
  live.begin(1, "lr=0.1", 2, 10, 1000);
  for (int i = 0; i < 5; ++i) live.train(1, 1, 1);
  ASSERT_EQ(live.screen.lines().size(), 3u) << live.screen.text();
  // 500 of 8000 samples took 5 s.
  for (const char* part : {"fashion", "0/4 runs", "  6%", "1 m 15 s left", "5 s so far", "100 img/s"})
    EXPECT_THAT(live.line(0), HasSubstr(part));
  for (const char* title : {"lr", "device", "epoch", "loss", "acc", "it/s", "img/s", "left"})
    EXPECT_THAT(live.line(1), HasSubstr(title));
  // 5 of the epoch's 10 batches, and of the run's 20, took 5 s.
  for (const char* part : {"0.1", "cpu", "1/2", " 50%", "0.5000", "80.00%", "15 s", "1.00", "100"})
    EXPECT_THAT(live.line(2), HasSubstr(part));
}

TEST(Progress, FollowsAProgramThatReportsWholeEpochsOnly) {
  Live live(120, 1, 20);
  live.begin(1, "a", 20, 1, 1);
  for (int epoch = 1; epoch <= 5; ++epoch) {
    live.seconds += 1;
    live.progress.report(1, EpochRecord{epoch, {{"loss", 1.0 / epoch}, {"val_acc", 0.125 * epoch}}});
  }
  live.progress.report(1, RunPhase{"running"});
  EXPECT_THAT(live.line(0), HasSubstr(" 25%"));
  EXPECT_THAT(live.line(1), AllOf(Not(HasSubstr("img/s")), HasSubstr("val_acc")));
  EXPECT_THAT(live.line(2),
              AllOf(HasSubstr("6/20"), HasSubstr("0.2000"), HasSubstr("0.6250"), HasSubstr("15 s")));
}

// Epochs of a tenth of a second, half of it validation: each alone would have another speed.
TEST(Progress, SpeedsAreThoseOfASecondOfTrainingAtLeast) {
  Live live(120);
  live.begin(1, "a", 100, 1, 10);
  const auto epoch = [&](int number, double took) {
    live.begin_epoch(1, number);
    live.train(1, number, took, 10);
    live.progress.report(1, RunPhase{"validation"});
    live.seconds += 0.05;
  };
  for (int number = 1; number <= 19; ++number) epoch(number, 0.05);
  EXPECT_THAT(live.line(2), Not(HasSubstr(" 200"))) << "only 0.95 s of training";
  epoch(20, 0.0501);
  live.begin_epoch(1, 21);
  live.train(1, 21, 0.2, 10);
  EXPECT_THAT(live.line(2), HasSubstr("20.0    200")) << "the slow batch belongs to the next second";
}

TEST(Progress, NamesAPhaseThatLasts) {
  Live live(100);
  live.begin(1, "a", 9, 1, 10);
  live.train(1, 1, 0, 10);
  for (const bool is_named : {false, true}) {
    live.seconds += is_named ? 0.5 : 1;
    live.progress.report(1, RunPhase{"validation"});
    EXPECT_EQ(live.screen.text().find("validation") != std::string::npos, is_named);
  }
}

TEST(Progress, NeverDrawsALineWiderThanTheTerminal) {
  for (int width = 20; width < 160; width += 7) {
    Live live(width, 400, 1e9);
    live.begin(1, std::string(100, 'n'), 100, 1000, 100000, 42);
    live.train(1, 42, 100, 100, 5e4);
    for (const std::string& line : live.screen.lines()) EXPECT_LT(display_width(line), width) << line;
  }
}

TEST(Progress, LeavesFinishedRunsAboveTheTableAndErasesTheTable) {
  Live live(100, 3, 10);
  live.begin(1, "a", 1, 1, 10);
  live.train(1, 1, 0, 10);
  live.progress.end_run(1, record("a", RunStatus::kFailed));
  live.progress.end_run(2, record("b", RunStatus::kCompleted));
  live.begin(3, "c", 1, 1, 10);
  ASSERT_EQ(live.screen.lines().size(), 5u) << live.screen.text();
  EXPECT_EQ(live.line(0), "✗ a  failed: broken");
  EXPECT_THAT(live.line(1), HasSubstr("★ b  loss 0.7500  acc 25.00%  val loss 0.5000  val acc 50.00%"));
  EXPECT_THAT(live.line(2), AllOf(HasSubstr("2/3 runs"), HasSubstr("1 failed")));
  EXPECT_THAT(live.line(4), HasSubstr("1/1"));
  live.table.reset();
  EXPECT_EQ(live.screen.lines().size(), 2u);
}

TEST(Progress, KeepsTheBestRunInSight) {
  Live live(100, 3, 10);
  live.progress.end_run(1, record("better", RunStatus::kCompleted, 0.75));
  live.progress.end_run(2, record("worse", RunStatus::kCompleted, 0.5));
  live.progress.pass_time();
  ASSERT_EQ(live.screen.lines().size(), 4u) << live.screen.text();
  EXPECT_THAT(live.line(0), HasSubstr("★ better"));
  EXPECT_THAT(live.line(1), HasSubstr("✓ worse"));
  EXPECT_THAT(live.line(3), HasSubstr("★ better"));
}

TEST(Progress, TellsOnceWhyRunsAreSkipped) {
  Live live(100, 3, 10);
  for (std::size_t number = 1; number <= 3; ++number) {
    RunRecord run = record("a", RunStatus::kSkipped);
    run.error = number < 3 ? "no device" : "another reason";
    live.progress.end_run(number, run);
  }
  live.progress.pass_time();
  ASSERT_EQ(live.screen.lines().size(), 3u) << live.screen.text();
  EXPECT_THAT(live.line(2), HasSubstr("3 skipped"));
}

// The lines of two runs in training that differ in lr, whose names end with `rest`.
std::vector<std::string> two_runs(int width, int epochs, const Params& rest) {
  Live live(width, 2);
  for (std::size_t number = 1; number <= 2; ++number) {
    RunRecord run;
    run.name = "lr=" + std::to_string(number);
    run.params = {{"lr", static_cast<std::int64_t>(number)}};
    run.params.insert(run.params.end(), rest.begin(), rest.end());
    live.progress.start_run(number, run);
    live.begin(number, run.name, epochs, 100, 100, 42);
    live.train(number, 42, 20);
  }
  live.progress.pass_time();
  return live.screen.lines();
}

TEST(Progress, CutsParametersThatDoNotTellRunsApartFirst) {
  for (const int width : {60, 80, 200}) {
    const std::vector<std::string> lines = two_runs(width, 100, {{"same_for_all_of_the_runs", 0.5}});
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_THAT(lines[1], HasSubstr("lr")) << width;
    EXPECT_EQ(lines[1].find("same_for") != std::string::npos, width == 200);
    EXPECT_THAT(lines[2], AllOf(HasSubstr("42/100"), HasSubstr("80.00%"))) << width;
  }
}

TEST(Progress, CutsTheLossBeforeWhatTellsRunsApart) {
  for (const int width : {40, 45, 50}) {
    const std::string titles = two_runs(width, 6000, {}).at(1);
    EXPECT_THAT(titles, AllOf(HasSubstr("lr"), HasSubstr("acc"))) << width;
    EXPECT_EQ(titles.find("loss") != std::string::npos, width > 40) << width;
  }
}

TEST(Progress, ShowsOneParameterOfASingleRunEvenIfThereIsLittleRoom) {
  Live live(60, 2);
  RunRecord run;
  run.name = "momentum=0.5,lr=0.125";
  run.params = {{"constant", true}, {"momentum", 0.5}, {"lr", 0.125}};
  live.progress.start_run(1, run);
  live.begin(1, run.name, 100, 9, 9);
  live.train(1, 1, 20, 10);
  EXPECT_THAT(live.screen.text(), AllOf(HasSubstr("momentum"), Not(HasSubstr("constant"))));
}

TEST(Progress, NamesAFinishedRunByItsValuesWhereThereIsLittleRoom) {
  RunRecord run = record("lr=0.125,batch_size=1000,shuffle=false", RunStatus::kCompleted);
  run.params = {
      {"lr", 0.125}, {"batch_size", std::int64_t{1000}}, {"shuffle", false}, {"seed", std::int64_t{7}}};
  for (const int width : {200, 50}) {
    Live live(width, 2);
    live.progress.end_run(1, run);
    EXPECT_THAT(live.line(0), HasSubstr(width == 200 ? run.name + "  loss" : "★ 0.125, 1000, false  "));
    EXPECT_THAT(live.line(0), HasSubstr("val acc 50.00%")) << width;
  }
}

TEST(Progress, TakesAQuarterOfTheScreenAtMost) {
  Live live(100, 100, 1e6, 40);
  for (std::size_t number = 1; number <= 64; ++number) live.begin(number, std::to_string(number), 1, 1, 1);
  live.seconds += 1;
  live.progress.pass_time();
  ASSERT_EQ(live.screen.lines().size(), 10u);
  EXPECT_EQ(live.screen.lines().back(), "  and 57 more runs in training");
}

TEST(Progress, RedrawsAtMostTenTimesASecond) {
  Live live(100);
  live.begin(1, "a", 1, 100000, 1000000);
  for (int i = 0; i < 10000; ++i) live.train(1, 1, 0.0002, 10, 0.1 * i);
  EXPECT_GE(live.screen.writes, 15u);
  EXPECT_LE(live.screen.writes, 21u);
}

TEST(Progress, WritesPlainLinesInALog) {
  std::string log;
  Terminal terminal;
  terminal.write = [&log](std::string_view text) { log += text; };
  const auto made = make_progress({terminal, [] { return 10.0; }, "s", 2, 10});
  Progress& progress = *made;
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
  Terminal terminal;
  terminal.interactive = true;
  terminal.unicode = false;
  terminal.write = [&sent](std::string_view text) { sent += text; };
  {
    const auto progress = make_progress({terminal, [] { return 10.0; }, "s", 1, 10});
    progress->report(1, RunPlan{.name = "a", .epochs = 1, .batches = 1, .samples = 10});
    progress->report(1, TrainedBatches{1, 1, {.loss = 1, .correct = 1, .samples = 10}});
  }
  for (std::size_t i = sent.find("\x1b["); i != std::string::npos; i = sent.find("\x1b[", i + 1)) {
    EXPECT_NE(sent[sent.find_first_not_of("0123456789;", i + 2)], 'm');
  }
  EXPECT_TRUE(
      std::all_of(sent.begin(), sent.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST(EpochLine, EscapesNamesThatWouldColourTheTerminal) {
  EXPECT_EQ(epoch_line({.name = "s", .runs = 2}, {.name = "a"}, {3, {{"\x1b[31mred\nx", 1.0}}}),
            "[1/2] a  epoch 3  \\u001b[31mred\\nx 1.0000")
      << "of a program whose reports nobody has counted";
}

}  // namespace sweep::progress_views_test
