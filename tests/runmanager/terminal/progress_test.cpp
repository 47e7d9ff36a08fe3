#include "runmanager/terminal/progress.h"

#include "runmanager/terminal/live_sweep.h"
#include "tests/support/test.h"

namespace sweep::progress_test {

struct ProgressState : ::testing::Test {
  double seconds = 10;
  const std::unique_ptr<Progress> made = make_progress(
      {.clock = [this] { return seconds; }, .sweep = "s", .runs = 4, .work = 400, .quiet = true});
  Progress& progress = *made;
  const LiveSweep& state() { return progress.state(); }

  void begin(std::size_t number, int epochs, int trained = 0) {
    progress.report(number, RunPlan{.name = "run " + std::to_string(number),
                                    .epochs = epochs,
                                    .batches = 10,
                                    .samples = 100,
                                    .trained_epochs = trained});
  }
  void end(std::size_t number, RunStatus status, double accuracy = 0.5) {
    RunRecord run;
    run.name = "run " + std::to_string(number);
    run.status = status;
    run.epochs = {{1, {{"loss", 1}, {"accuracy", accuracy}}}};
    progress.end_run(number, run);
  }
};

TEST_F(ProgressState, IsThatOfTheEpochInWork) {
  RunRecord record;
  record.name = "a";
  record.params = {{"lr", 0.5}};
  progress.start_run(2, record);
  EXPECT_FALSE(state().active.at(2).has_begun);
  begin(2, 2);
  progress.report(2, TrainedBatches{.epoch = 2});
  for (int i = 0; i < 5; ++i) {
    seconds += 1;
    progress.report(2, TrainedBatches{2, 1, {.loss = 5, .correct = 8, .samples = 10}});
  }
  const LiveRun& run = state().active.at(2);
  EXPECT_EQ(run.params, record.params);
  EXPECT_EQ(run.loss, 0.5);
  EXPECT_EQ(run.accuracy, 0.8);
  EXPECT_EQ(run.samples_per_second, 10);
  EXPECT_EQ(run.batches_per_second, 1);
  EXPECT_EQ(run.epoch_fraction(), 0.5);
  EXPECT_EQ(run.fraction(), 0.75);
  EXPECT_NEAR(*run.seconds_left(), 5 / 3.0, 1e-9);
  EXPECT_EQ(state().fraction(), 150.0 / 400);
}

TEST_F(ProgressState, CountsARunOnceHoweverOftenItEnds) {
  begin(1, 1);
  end(1, RunStatus::kInterrupted);
  EXPECT_EQ(state().finished(), 1u);
  EXPECT_EQ(state().fraction(), 0.25);
  end(1, RunStatus::kInterrupted);
  EXPECT_EQ(state().finished(), 1u);
  EXPECT_EQ(state().fraction(), 0.25);
  begin(1, 2, 1);
  EXPECT_EQ(state().finished(), 0u);
  EXPECT_EQ(state().fraction(), 0.25) << "the epoch that is trained";
  begin(1, 2, 1);
  EXPECT_EQ(state().active.size(), 1u);
  end(1, RunStatus::kCompleted);
  EXPECT_EQ(state().finished(), 1u);
  EXPECT_EQ(state().count(RunStatus::kCompleted), 1u);
  EXPECT_EQ(state().count(RunStatus::kInterrupted), 0u);
  EXPECT_EQ(state().fraction(), 0.5);
}

TEST_F(ProgressState, ARunThatPausesIsNotFinishedButItsWorkIsDone) {
  begin(1, 4);
  progress.report(1, EpochRecord{1, {{"loss", 1}}});
  progress.pause_run(1);
  EXPECT_EQ(state().finished(), 0u);
  EXPECT_TRUE(state().active.empty());
  EXPECT_EQ(state().fraction(), 0.25);
  begin(1, 4, 1);
  progress.report(1, EpochRecord{2, {{"loss", 1}}});
  end(1, RunStatus::kPruned);
  EXPECT_EQ(state().finished(), 1u);
  EXPECT_EQ(state().fraction(), 0.5);
}

TEST_F(ProgressState, CountsWhatIsKnownOfARunUntilItTellsHowFarItIs) {
  progress.know_work(1, 100, true);
  progress.start_run(1, {});
  EXPECT_EQ(state().fraction(), 0.25);
  begin(1, 4, 2);
  EXPECT_EQ(state().fraction(), 0.5);
  progress.start_run(1, {});
  EXPECT_EQ(state().fraction(), 0.5) << "another attempt";
  begin(1, 4);
  EXPECT_EQ(state().fraction(), 0);
  progress.start_run(2, {});
  end(2, RunStatus::kFailed);
  EXPECT_EQ(state().fraction(), 0) << "that had not begun";
}

TEST_F(ProgressState, EstimatesTheTimeLeftByWhatThisStartDoes) {
  progress.know_work(1, 200, true);
  progress.know_work(2, 50, true);
  EXPECT_EQ(state().fraction(), 0.625);
  begin(1, 4, 2);
  seconds += 10;
  EXPECT_EQ(state().fraction(), 0.625) << "the same work";
  EXPECT_EQ(state().seconds_left(), std::nullopt);
  progress.report(1, EpochRecord{3, {{"loss", 1}}});
  EXPECT_EQ(state().fraction(), 0.875);
  EXPECT_NEAR(*state().seconds_left(), 5, 1e-9);
  progress.add_work(100);
  EXPECT_NEAR(*state().seconds_left(), 15, 1e-9);
  progress.know_work(3, 100, false);
  EXPECT_NEAR(*state().seconds_left(), 2.5, 1e-9) << "others help";
  end(2, RunStatus::kPruned);
  EXPECT_EQ(state().fraction(), 0.9) << "pruned by what an earlier start did";
}

TEST_F(ProgressState, KnowsTheBestRunOfThisStartAndEarlierOnes) {
  RunRecord earlier;
  earlier.name = "earlier";
  earlier.status = RunStatus::kCompleted;
  earlier.epochs = {{1, {{"loss", 1}, {"accuracy", 0.6}}}};
  progress.consider(earlier);
  end(1, RunStatus::kCompleted, 0.5);
  EXPECT_EQ(state().best->name, "earlier");
  end(2, RunStatus::kFailed, 0.9);
  end(3, RunStatus::kCompleted, 0.7);
  EXPECT_EQ(state().best->name, "run 3");
  EXPECT_EQ(state().latest.size(), 3u);
}

TEST_F(ProgressState, IsTheSameAfterItWasWrittenAndRead) {
  RunRecord record;
  record.name = "a";
  record.params = {
      {"lr", 0.5}, {"shuffle", true}, {"batch_size", std::int64_t{10}}, {"device", std::string("cpu")}};
  progress.start_run(3, record);
  begin(4, 9);
  progress.report(4, TrainedBatches{.epoch = 1});
  seconds += 2;
  progress.report(4, TrainedBatches{1, 1, {.loss = 5, .correct = 8, .samples = 10}});
  progress.report(4, EpochRecord{1, {{"loss", 1}, {"accuracy", 0.5}, {"validation_loss", 0.25}}});
  end(1, RunStatus::kCompleted);
  end(2, RunStatus::kFailed);
  progress.keep_runs(1);
  const nlohmann::ordered_json written = to_json(state());
  const LiveSweep read = live_sweep_from_json(written, "file");
  EXPECT_EQ(to_json(read), written);
  EXPECT_EQ(read.active.at(4).loss, 0.5);
  EXPECT_EQ(read.best->name, "run 1");
}

TEST_F(ProgressState, RefusesWhatIsNoProgress) {
  begin(4, 9);
  end(1, RunStatus::kCompleted);
  const nlohmann::ordered_json good = to_json(state());
  for (const auto& [key, value] : good.items()) {
    if (key == "fraction" || key == "seconds_left" || key == "samples_per_second" || key == "finished")
      continue;
    nlohmann::ordered_json bad = good;
    bad[key] = "something else";
    if (key != "sweep") {
      EXPECT_THROW(live_sweep_from_json(bad, "file"), DataError) << key;
    }
    bad.erase(key);
    if (key == "earlier_work")
      EXPECT_EQ(live_sweep_from_json(bad, "file").earlier_work, 0) << "0.1.0 does not write it";
    else
      EXPECT_THROW(live_sweep_from_json(bad, "file"), DataError) << key;
  }
  EXPECT_THROW(live_sweep_from_json(nullptr, "file"), DataError);
}

using Json = nlohmann::json;

// The events that a progress as JSON writes.
struct Written {
  std::vector<Json> events;
  std::unique_ptr<Progress> progress;

  explicit Written(bool quiet) {
    const auto write = [this](std::string_view line) {
      EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
      events.push_back(Json::parse(line));
    };
    progress = make_progress({.terminal = {.write = write},
                              .clock = [] { return 0.0; },
                              .sweep = "s",
                              .runs = 4,
                              .work = 100,
                              .json = true,
                              .quiet = quiet});
  }
};

RunRecord ended(RunStatus status) {
  RunRecord run;
  run.name = "a\n\"b\"";
  run.status = status;
  if (status == RunStatus::kFailed) run.error = "broken";
  run.run_seconds = 1.5;
  run.metrics = {{"test_accuracy", 0.5}};
  return run;
}

void train(Progress& progress, RunStatus status) {
  const RunPlan plan{.name = "a\n\"b\"", .epochs = 3, .batches = 10, .samples = 100, .trained_epochs = 1};
  const EpochRecord epoch{2, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"accuracy", 0.25}}};
  for (const RunEvent& event :
       std::vector<RunEvent>{plan, TrainedBatches{2, 1, {.loss = 1, .correct = 1, .samples = 10}},
                             RunPhase{"validation"}, epoch})
    progress.report(2, event);
  progress.end_run(2, ended(status));
}

TEST(JsonProgress, IsAnObjectPerEvent) {
  Written written(false);
  Progress& progress = *written.progress;
  progress.keep_runs(0);
  progress.keep_runs(1);
  progress.message("two\nlines");
  train(progress, RunStatus::kCompleted);
  ASSERT_EQ(written.events.size(), 5u);
  EXPECT_EQ(written.events[0], Json::parse(R"({"event": "kept", "runs": 1})"));
  EXPECT_EQ(written.events[1], Json::parse(R"({"event": "message", "text": "two\nlines"})"));
  EXPECT_EQ(written.events[2],
            Json::parse(R"({"event": "begin", "run": "a\n\"b\"", "number": 2, "runs": 4, "epochs": 3,
      "trained_epochs": 1, "batches": 10, "samples": 100})"));
  EXPECT_EQ(written.events[3].at("run"), "a\n\"b\"");
  EXPECT_EQ(written.events[3].at("epoch"), 2);
  EXPECT_EQ(written.events[3].at("loss"), "NaN");
  EXPECT_EQ(written.events[3].at("accuracy"), 0.25);
  EXPECT_EQ(written.events[4].at("status"), "completed");
  EXPECT_EQ(written.events[4].at("metrics").at("test_accuracy"), 0.5);
  EXPECT_EQ(written.events[4].at("run_seconds"), 1.5);
  EXPECT_FALSE(written.events[4].contains("error"));
}

TEST(JsonProgress, SaysOnlyFailuresAndMessagesIfQuiet) {
  Written written(true);
  Progress& progress = *written.progress;
  progress.keep_runs(1);
  train(progress, RunStatus::kCompleted);
  train(progress, RunStatus::kFailed);
  progress.message("m");
  ASSERT_EQ(written.events.size(), 2u);
  EXPECT_EQ(written.events[0].at("error"), "broken");
  EXPECT_EQ(written.events[1].at("text"), "m");
}

}  // namespace sweep::progress_test
