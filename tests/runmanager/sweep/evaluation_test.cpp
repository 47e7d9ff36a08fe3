// Which passes over the validation and test sets a run makes, and what it writes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runmanager/inspect/fsck.h"
#include "runmanager/sweep/sweep_runner.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kFirst = "lr=0.5,device=cpu";

Json read_json(const fs::path& path) { return Json::parse(tbwriter::slurp(path)); }

TEST(RunSweep, PassesOverTheSamplesThatItShowsOnceAfterTheLastEpoch) {
  World world;
  world.run(small_sweep());
  EXPECT_EQ(world.training.passes, 2u * (2 * 1 + 2)) << "of each run two of validation, and the test's";
  std::set<std::string> tags;
  for (const proto::Event& event : tbwriter::read_run(world.path(kFirst))) {
    for (const auto& value : event.summary().value()) tags.insert(value.tag());
  }
  EXPECT_TRUE(tags.contains("predictions/confusion_matrix"))
      << "which the last pass has given the outputs for";
}

// The tags of a run's scalars at a step.
std::set<std::string> tags_at(const fs::path& run, std::int64_t step) {
  std::set<std::string> tags;
  for (const proto::Event& event : tbwriter::read_run(run)) {
    for (const auto& value : event.summary().value()) {
      if (event.step() == step && value.has_simple_value()) tags.insert(value.tag());
    }
  }
  return tags;
}

TEST(RunSweep, MeasuresTheUntrainedNetworkAsEpochZeroWhenAsked) {
  World world;
  world.training.evaluation_loss = 2.5;
  Sweep sweep = small_sweep();
  for (RunConfig& run : sweep.runs) run.evaluate_first = true;
  const SweepOutcome outcome = world.run(sweep);
  EXPECT_EQ(outcome.runs[0].epochs.size(), 2u);
  EXPECT_EQ(outcome.runs[0].untrained.value().validation_loss, 2.5);
  EXPECT_EQ(tags_at(world.path(kFirst), 0),
            (std::set<std::string>{"Accuracy/validation", "Loss/validation", "Number Correct/validation"}));
  const auto rows = parse_csv(tbwriter::slurp(world.options.logdir / "small" / "results.csv"));
  ASSERT_EQ(rows.size(), 1u + 2 * 3);
  EXPECT_THAT(std::vector(rows[1].begin() + 2, rows[1].begin() + 9),
              ElementsAre("0", "", "", "", "2.5", "1", ""));
  EXPECT_EQ(rows[1][10], "") << "images per second";
  EXPECT_EQ(rows[2][2], "1");
  const Json epochs = read_json(world.path(kFirst) / "run.json")["epochs"];
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[0]["epoch"], 0);
  EXPECT_TRUE(epochs[0]["loss"].is_null());
  EXPECT_EQ(epochs[0]["validation_loss"], 2.5);
  EXPECT_THAT(world.terminal_output, HasSubstr("epoch 0/2  val loss 2.5000  val acc 100.00%\n"));
  EXPECT_EQ(check_directory(world.options.logdir / "small").damaged(), 0u);
}

TEST(RunSweep, KeepsEpochZeroAcrossAResumeAndARunWithoutItAsItIs) {
  World world;
  Sweep sweep = small_sweep();
  sweep.runs.resize(1);
  world.run(sweep);
  const std::string kept = tbwriter::slurp(world.path(kFirst) / "run.json");
  sweep.runs[0].evaluate_first = true;
  world.run(sweep);
  EXPECT_EQ(tbwriter::slurp(world.path(kFirst) / "run.json"), kept);
  EXPECT_THAT(world.terminal_output, HasSubstr("has no epoch 0, which evaluate_first asks for"));
  sweep.runs[0].epochs = 3;  // continues, still without
  sweep.runs[0].resolved["epochs"] = 3;
  EXPECT_FALSE(world.run(sweep).runs[0].untrained);
  world.options.fresh = true;
  sweep.runs[0].epochs = 1;
  sweep.runs[0].resolved["epochs"] = 1;
  world.run(sweep);
  world.options.fresh = false;
  sweep.name = "small-2";
  sweep.runs[0].epochs = 2;
  sweep.runs[0].resolved["epochs"] = 2;
  world.training.evaluation_loss = 7;
  const SweepOutcome resumed = world.run(sweep);
  EXPECT_EQ(resumed.runs[0].untrained.value().validation_loss, 0.25) << "of the first start";
  EXPECT_EQ(resumed.runs[0].epochs.at(1).validation_loss, 7);
}

}  // namespace
}  // namespace sweep
