#include "runmanager/tensorboard/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/base/file.h"
#include "runmanager/config/run_name.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using tbwriter::read_run;
using tbwriter::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunRecord record(std::vector<EpochRecord> epochs, RunStatus status = RunStatus::kCompleted) {
  RunRecord run;
  run.status = status;
  run.epochs = std::move(epochs);
  return run;
}

std::vector<const RunRecord*> pointers(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> result;
  for (const RunRecord& run : runs) result.push_back(&run);
  return result;
}

// lr 0.5 and 0.25, each `repeats` times, as a sweep file with repeats expands.
Sweep repeated_sweep(std::uint32_t repeats) {
  Sweep sweep = small_sweep();
  sweep.keys.emplace_back("repeat");
  const std::vector<RunConfig> combinations = std::move(sweep.runs);
  sweep.runs.clear();
  std::vector<Params> params;
  for (const RunConfig& combination : combinations) {
    for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
      RunConfig run = combination;
      run.index = sweep.runs.size();
      run.repeat = repeat;
      run.params.emplace_back("repeat", static_cast<std::int64_t>(repeat));
      params.push_back(run.params);
      sweep.runs.push_back(std::move(run));
    }
  }
  const auto names = run_names(params);
  for (std::size_t i = 0; i < names.size(); ++i) sweep.runs[i].name = names[i];
  return sweep;
}

std::vector<double> points(const fs::path& run, const std::string& tag) {
  std::vector<double> values;
  for (const auto& value : values_of(read_run(run), tag)) values.push_back(value.simple_value());
  return values;
}

std::set<std::string> directories(const fs::path& parent) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(AggregateOf, IsMeanLeastAndGreatestOfEveryEpoch) {
  const std::vector<RunRecord> runs = {
      record({{.epoch = 1, .loss = 1, .accuracy = 0.5, .validation_loss = 4, .validation_accuracy = 0.25},
              {.epoch = 2, .loss = 0.5, .accuracy = 0.75, .validation_loss = 2, .validation_accuracy = 0.5}}),
      record({{.epoch = 1, .loss = 3, .accuracy = 0.25, .validation_loss = 1, .validation_accuracy = 0.5},
              {.epoch = 2, .loss = 0.25, .accuracy = 1, .validation_loss = 8, .validation_accuracy = 0.75}}),
      record({{.epoch = 1, .loss = 5, .accuracy = 0, .validation_loss = 1, .validation_accuracy = 0},
              {.epoch = 2, .loss = 0, .accuracy = 0.5, .validation_loss = 2, .validation_accuracy = 1}})};
  const auto aggregate = aggregate_of(pointers(runs));
  ASSERT_TRUE(aggregate);
  ASSERT_EQ(aggregate->mean.size(), 2u);
  EXPECT_EQ(aggregate->mean[0].loss, 3);
  EXPECT_EQ(aggregate->mean[0].accuracy, 0.25);
  EXPECT_EQ(aggregate->mean[0].validation_loss, 2);
  EXPECT_EQ(aggregate->mean[0].validation_accuracy, 0.25);
  EXPECT_EQ(aggregate->mean[1].epoch, 2);
  EXPECT_EQ(aggregate->mean[1].loss, 0.25);
  EXPECT_EQ(aggregate->min[0].loss, 1);
  EXPECT_EQ(aggregate->min[0].accuracy, 0);
  EXPECT_EQ(aggregate->min[1].validation_loss, 2);
  EXPECT_EQ(aggregate->min[1].validation_accuracy, 0.5);
  EXPECT_EQ(aggregate->max[0].loss, 5);
  EXPECT_EQ(aggregate->max[1].accuracy, 1);
  EXPECT_EQ(aggregate->max[1].validation_loss, 8);
  EXPECT_EQ(aggregate->max[1].validation_accuracy, 1);
}

TEST(AggregateOf, NeedsTwoCompletedRuns) {
  EXPECT_FALSE(aggregate_of({}));
  EXPECT_FALSE(aggregate_of(pointers({record({{.loss = 1}})})));
  const std::vector<RunRecord> one_failed = {record({{.loss = 1}}),
                                             record({{.loss = 9}}, RunStatus::kFailed)};
  EXPECT_FALSE(aggregate_of(pointers(one_failed)));
  const std::vector<RunRecord> one_of_three_failed = {
      record({{.loss = 1}}), record({{.loss = 9}}, RunStatus::kFailed), record({{.loss = 2}})};
  EXPECT_EQ(aggregate_of(pointers(one_of_three_failed))->max[0].loss, 2) << "the failed run counts not";
}

TEST(AggregateOf, KeepsNaNWhereverItStandsAndLeavesOutWhatWasNotMeasured) {
  for (const std::size_t place : {0u, 1u}) {
    std::vector<RunRecord> runs = {record({{.loss = 1}}), record({{.loss = 1}})};
    runs[place].epochs[0].loss = std::numeric_limits<double>::quiet_NaN();
    const auto aggregate = aggregate_of(pointers(runs));
    EXPECT_TRUE(std::isnan(aggregate->mean[0].loss));
    EXPECT_TRUE(std::isnan(aggregate->min[0].loss));
    EXPECT_TRUE(std::isnan(aggregate->max[0].loss));
    EXPECT_FALSE(aggregate->mean[0].validation_loss.has_value());
  }
}

class AggregateRunsTest : public ::testing::Test {
 protected:
  // Repeat r of every combination has loss r + 1 in its first epoch and half of it in the second.
  AggregateRunsTest() {
    world_.training.on_train = [this](const Batch& batch, std::int64_t step) {
      const auto samples = static_cast<std::int64_t>(batch.size());
      const double loss = static_cast<double>((world_.training.engines - 1) % 3 + 1) / (step < 4 ? 1 : 2);
      return Totals{loss * static_cast<double>(samples), samples / 2, samples};
    };
  }
  fs::path aggregate(const std::string& statistic) const {
    return world_.path("lr=0.5,device=cpu,aggregate=" + statistic);
  }
  World world_;
};

TEST_F(AggregateRunsTest, StandBesideTheRunsWithTheSameTags) {
  world_.run(repeated_sweep(3));
  EXPECT_THAT(points(aggregate("mean"), "Loss/train"), ElementsAre(2, 1));
  EXPECT_THAT(points(aggregate("min"), "Loss/train"), ElementsAre(1, 0.5));
  EXPECT_THAT(points(aggregate("max"), "Loss/train"), ElementsAre(3, 1.5));
  for (const char* statistic : {"mean", "min", "max"}) {
    EXPECT_THAT(points(aggregate(statistic), "Accuracy/train"), ElementsAre(0.5, 0.5));
    EXPECT_THAT(points(aggregate(statistic), "Loss/validation"), ElementsAre(0.25, 0.25));
    EXPECT_THAT(points(aggregate(statistic), "Accuracy/validation"), ElementsAre(1, 1));
    for (const proto::Event& event : read_run(aggregate(statistic))) {
      for (const auto& value : event.summary().value())
        EXPECT_NE(value.metadata().plugin_data().plugin_name(), "hparams");
    }
    EXPECT_FALSE(fs::exists(aggregate(statistic) / "run.json"));
  }
  EXPECT_THAT(read_file(world_.path("results.csv")), Not(HasSubstr("aggregate")));
  EXPECT_THAT(read_file(world_.path("results.json")), Not(HasSubstr("aggregate")));
  EXPECT_EQ(directories(world_.path("")).size(), 2u * 3 + 2 * 3);
}

TEST_F(AggregateRunsTest, AreNotThereWithoutRepeatsOrWithOne) {
  const SweepOutcome plain = world_.run(small_sweep());
  EXPECT_EQ(directories(plain.directory), (std::set<std::string>{plain.runs[0].name, plain.runs[1].name}));
  World other;
  const SweepOutcome once = other.run(repeated_sweep(1));
  EXPECT_EQ(directories(once.directory), (std::set<std::string>{once.runs[0].name, once.runs[1].name}));
}

TEST_F(AggregateRunsTest, AreWrittenAnewInOneFileWhenTheSweepRunsAgain) {
  world_.run(repeated_sweep(3));
  Sweep changed = repeated_sweep(3);
  for (RunConfig& run : changed.runs) {
    run.resolved["epochs"] = run.epochs = 1;
    run.resolved["seed"] = 8;
  }
  world_.options.replace = true;
  world_.training.engines = 1;  // so that the losses are 2, 3, 1
  world_.run(changed);
  EXPECT_THAT(points(aggregate("mean"), "Loss/train"), ElementsAre(2));
  EXPECT_EQ(std::distance(fs::directory_iterator(aggregate("mean")), fs::directory_iterator()), 1);
  world_.run(changed);  // everything kept
  EXPECT_THAT(points(aggregate("max"), "Loss/train"), ElementsAre(3));
}

TEST_F(AggregateRunsTest, GoWhenTheirRunsAreToBeTrainedAgainAndComeAtTheirEnd) {
  world_.run(repeated_sweep(3));
  Sweep changed = repeated_sweep(3);
  for (RunConfig& run : changed.runs) {
    run.resolved["epochs"] = run.epochs = 1;
    run.resolved["seed"] = 8;
  }
  world_.options.replace = true;
  std::size_t seen = 0;
  world_.training.on_train = [&](const Batch& batch, std::int64_t) {
    EXPECT_EQ(fs::exists(aggregate("mean")), seen++ >= 3 * 4) << "batch " << seen;
    if (seen == 3 * 4 + 1) world_.signal = 15;  // in the second combination
    return Totals{1, 1, static_cast<std::int64_t>(batch.size())};
  };
  world_.run(changed);
  EXPECT_EQ(seen, 13u);
  EXPECT_TRUE(fs::exists(aggregate("mean")));
  EXPECT_FALSE(fs::exists(world_.path("lr=0.25,device=cpu,aggregate=mean")));
}

TEST_F(AggregateRunsTest, AreNotThereForSkippedRuns) {
  Sweep sweep = repeated_sweep(2);
  for (RunConfig& run : sweep.runs) run.device = "cuda";
  const SweepOutcome outcome = world_.run(sweep);
  EXPECT_EQ(directories(outcome.directory).size(), 4u);
}

TEST(AggregateNames, AreNeverThoseOfRunsNorOfEachOther) {
  std::vector<Params> params;
  const std::string longer(300, 'x');
  for (const std::string& text :
       {std::string("a"), std::string("A"), longer, longer + "y", std::string("a,aggregate=mean")}) {
    for (const std::string& last : {std::string("mean"), std::string("Mean"), std::string("min")}) {
      for (std::int64_t repeat = 0; repeat < 2; ++repeat)
        params.push_back({{"text", text}, {"aggregate", last}, {"repeat", repeat}});
      params.push_back({{"text", text}, {"aggregate", last}});  // a run that looks like an aggregate
    }
    for (std::int64_t repeat = 0; repeat < 2; ++repeat)
      params.push_back({{"text", text}, {"repeat", repeat}});
  }
  const std::vector<std::string> names = run_names(params);
  std::vector<RunConfig> runs(params.size());
  std::set<std::string> taken;
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = names[i];
    runs[i].params = params[i];
    taken.insert(lower(names[i]));
  }
  ASSERT_EQ(taken.size(), runs.size());
  const auto aggregates = AggregateRuns(".", runs).names();
  EXPECT_EQ(aggregates.size(), 5u * 4 * 3);
  for (const std::string& name : aggregates) EXPECT_TRUE(taken.insert(lower(name)).second) << name;
}

}  // namespace
}  // namespace sweep
