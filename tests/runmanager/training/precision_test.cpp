// "precision" as a key and as an axis of real sweeps, and what becomes of runs that cannot have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/environment.h"
#include "tests/support/quarters.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using test::Environment;
using ::testing::HasSubstr;

constexpr const char* kVariable = "SWEEP_BF16";

class PrecisionAxis : public ::testing::Test {
 protected:
  PrecisionAxis() { write_quarters(directory_.path()); }

  Sweep sweep(const std::string& precisions) const {
    const std::vector<std::string> overrides = {"batch_size=20", "num_workers=0", "epochs=4",
                                                "precision=" + precisions};
    return load_sweep(directory_ / "quarters.json", overrides);
  }

  SweepOutcome run(
      const std::string& logdir, const std::string& precisions, bool strict = false,
      std::function<int()> stop_requested = [] { return 0; }) {
    SweepEnvironment environment;
    environment.terminal = {};
    environment.out = &out_;
    environment.stop_requested = std::move(stop_requested);
    return run_sweep(sweep(precisions),
                     {.logdir = directory_.path() / logdir, .threads = 1, .strict = strict}, environment);
  }

  TemporaryDirectory directory_;
  std::ostringstream out_;
};

TEST_F(PrecisionAxis, TrainsBothAndRecordsWhich) {
  const Environment emulated(kVariable, "emulate");
  const SweepOutcome outcome = run("runs", "fp32,bf16");
  ASSERT_EQ(outcome.runs.size(), 2u);
  const RunRecord &fp32 = outcome.runs[0], &bf16 = outcome.runs[1];
  EXPECT_THAT(bf16.name, HasSubstr("precision=bf16"));
  EXPECT_EQ(bf16.config.at("precision"), "bf16");
  EXPECT_EQ(fp32.config.at("precision"), "fp32");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(bf16.epochs.back()["loss"], fp32.epochs.back()["loss"]);
  EXPECT_NEAR(*bf16.epochs.back()["loss"], *fp32.epochs.back()["loss"], 0.05);
  EXPECT_GE(bf16.metrics.at("test_accuracy"), 0.9);
  EXPECT_THAT(tbwriter::slurp(outcome.directory / "sweep.json"), HasSubstr("bf16"));
}

TEST_F(PrecisionAxis, SkipsRunsThatThisMachineCannotTrainAndTrainsThemWhereItCan) {
  std::string kept;
  {
    const Environment off(kVariable, "off");
    const SweepOutcome outcome = run("runs", "fp32,bf16");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.runs[0].status, RunStatus::kCompleted);
    EXPECT_EQ(outcome.runs[1].status, RunStatus::kSkipped);
    EXPECT_EQ(outcome.runs[1].error.value_or(""),
              "precision bf16: the environment variable SWEEP_BF16 turns it off");
    kept = bits_of(outcome.runs[0], outcome.directory);
    const SweepOutcome strict = run("strict", "fp32,bf16", true);
    EXPECT_EQ(strict.exit_code, 1);
    EXPECT_EQ(strict.runs[1].status, RunStatus::kFailed);
  }
  const Environment emulated(kVariable, "emulate");
  const SweepOutcome outcome = run("runs", "fp32,bf16");
  EXPECT_EQ(outcome.runs[1].status, RunStatus::kCompleted);
  EXPECT_EQ(bits_of(outcome.runs[0], outcome.directory), kept);
}

TEST_F(PrecisionAxis, StoppedRunsGoOnToTheSameBits) {
  const Environment emulated(kVariable, "emulate");
  const std::string whole = bits_of(run("whole", "bf16"));
  int left = 25;  // two epochs of 10 batches of training and 2 of validation, and a part of the third
  EXPECT_EQ(run("stopped", "bf16", false, [&left] { return --left < 0 ? 15 : 0; }).exit_code, 143);
  EXPECT_EQ(bits_of(run("stopped", "bf16")), whole);
}

TEST_F(PrecisionAxis, IsPartOfTheIdentityOfARun) {
  const Environment emulated(kVariable, "emulate");
  const auto resolved = [&](const std::vector<std::string>& overrides) {
    return load_sweep(directory_ / "quarters.json", overrides).runs.at(0).resolved;
  };
  EXPECT_EQ(resolved({"precision=fp32"}), resolved({}));
  EXPECT_NE(resolved({"precision=bf16"}), resolved({}));
}

}  // namespace
}  // namespace sweep
