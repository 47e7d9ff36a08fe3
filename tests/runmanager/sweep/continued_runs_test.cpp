// A finished run that is given more epochs goes on to the bits of a run that had them from the start, with
// every schedule that allows it.

#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/quarters.h"
#include "tests/support/run_world.h"

#include "tests/support/test.h"

namespace sweep::continued_runs_test {

class ContinuedRuns : public ::testing::TestWithParam<const char*>, protected Quarters {
 protected:
  ContinuedRuns() {
    file_ = "s.json";
    tbwriter::spill(directory_ / file_, R"({
      "name": "s", "dataset": {"name": "quarters", "path": "data", "validation": 40},
      "network": {"layers": [{"type": "flatten"}, {"type": "linear", "out_features": 8}, {"type": "relu"},
                             {"type": "linear", "out_features": 4}]},
      "seed": 3, "batch_size": 20, "lr": 0.02, "schedule": )" +
                                            std::string(GetParam()) + R"(,
      "params": {"optimizer": ["adam", "sgd"], "optimizer.momentum": [0.9]},
      "when": {"optimizer.momentum": {"optimizer": "sgd"}}})");
  }
};

using GoOn = ContinuedRuns;
TEST_P(GoOn, ToTheBitsOfRunsThatHadAllEpochsFromTheStart) {
  const SweepOutcome first = run("continued", {"epochs=3"});
  ASSERT_EQ(first.exit_code, 0);
  const SweepOutcome continued = run("continued", {"epochs=7"}), whole = run("whole", {"epochs=7"});
  ASSERT_EQ(continued.exit_code, 0);
  ASSERT_EQ(whole.runs.size(), 2u);
  EXPECT_EQ(bits_of(continued), bits_of(whole));
  for (std::size_t i = 0; i < whole.runs.size(); ++i) {
    EXPECT_EQ(continued.runs[i].epochs.size(), 7u);
    EXPECT_EQ(continued.runs[i].started, first.runs[i].started) << "trained anew";
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, GoOn,
                         ::testing::Values(R"("constant")",
                                           R"({"name": "step", "step_size": 2, "gamma": 0.5})",
                                           R"({"name": "cosine", "T_max": 5, "eta_min": 0.001})",
                                           R"({"name": "warmup", "total_iters": 2})",
                                           // The end of the first epochs is inside the warmup.
                                           R"({"name": "warmup", "total_iters": 4,
                                               "then": {"name": "step", "step_size": 1}})",
                                           R"({"name": "warmup", "total_iters": 2,
                                               "then": {"name": "cosine", "T_max": 4}})"));

TEST_P(GoOn, WithTheBestEpochsWeightsToo) {
  const std::vector<std::string> best = {"checkpoint=best", "epochs=5"};
  run("continued", {"checkpoint=best", "epochs=2"});
  EXPECT_EQ(bits_of(run("continued", best)), bits_of(run("whole", best)));
}

using CannotGoOn = ContinuedRuns;
TEST_P(CannotGoOn, AndSayThatTheScheduleSpreadsOverAllEpochs) {
  const SweepOutcome first = run("runs", {"epochs=2"});
  const std::string before = bits_of(first),
                    message = test::message_of<ConfigError>([&] { run("runs", {"epochs=3"}); });
  const bool is_cycle = std::string(GetParam()).find("one_cycle") != std::string::npos;
  EXPECT_THAT(message,
              AllOf(HasSubstr("2 runs there have other settings than are asked for now:"),
                    HasSubstr(std::string("epochs: 2 -> 3 (the schedule, ") +
                              (is_cycle ? "one_cycle" : "cosine without T_max") +
                              ", spreads over all epochs, so every one of them has other learning rates)"),
                    HasSubstr("--replace trains them again")));
  EXPECT_EQ(bits_of(run("runs", {"epochs=2"})), before) << "nothing was changed";
}

INSTANTIATE_TEST_SUITE_P(Schedules, CannotGoOn,
                         ::testing::Values(R"("one_cycle")", R"({"name": "one_cycle", "three_phase": true})",
                                           R"("cosine")",
                                           R"({"name": "warmup", "total_iters": 1, "then": "cosine"})"));

// An earlier start may have taken longer for logs than this one took for all.
TEST(SweepCost, CountsOfAResumedRunOnlyWhatThisStartTook) {
  TemporaryDirectory directory;
  double seconds = 0;
  RunRecord record;
  record.name = "run";
  SweepRecorder recorder({.directory = directory.path(),
                          .name = "sweep",
                          .keys = {},
                          .clock = [&seconds] { return seconds; },
                          .terminal = {.write = [](std::string_view) {}}},
                         {}, {record});
  recorder.begin_run(0, record);
  recorder.take(0, RunPlan{.name = "run", .finished_epochs = {EpochRecord(1, {{"run_seconds", 90}})}});
  seconds = 12;
  record.run_seconds = 100;
  record.logging_seconds = 40;
  recorder.update(0, record);
  recorder.pause_run(0);
  EXPECT_DOUBLE_EQ(recorder.cost().logging_seconds, 4);
  EXPECT_DOUBLE_EQ(recorder.cost().training_seconds, 6);
}

}  // namespace sweep::continued_runs_test
