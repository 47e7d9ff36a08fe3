#include "runmanager/tensorboard/aggregate.h"

#include "core/base/file.h"
#include "proto/tensorboard/hparams.pb.h"
#include "runmanager/config/params.h"
#include "tests/support/run_world.h"

namespace sweep::aggregate_test {

using tbwriter::read_run, tbwriter::values_of;

RunRecord record(std::vector<EpochRecord> epochs, RunStatus status = RunStatus::kCompleted) {
  RunRecord run;
  run.status = status;
  run.epochs = std::move(epochs);
  return run;
}

const Metric* metric(const char* key) { return &metric_named(key); }

// All of `runs` as repeats of one combination.
std::optional<CompletedRepeats> completed(const std::vector<RunRecord>& runs) {
  RepeatGroup group;
  for (std::size_t i = 0; i < runs.size(); ++i) group.runs.push_back(i);
  return completed_repeats(group, runs);
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

TEST(SpreadsOf, IsMeanAndDeviationOfEveryMetricAndEpoch) {
  std::vector<RunRecord> runs = {
      record({{1, {{"loss", 1}, {"accuracy", 0.5}, {"validation_loss", 4}, {"validation_accuracy", 0.25}}},
              {2, {{"loss", 0.5}, {"accuracy", 0.75}, {"epoch_seconds", 2}}}}),
      record({{1, {{"loss", 3}, {"accuracy", 0.25}, {"validation_loss", 1}, {"validation_accuracy", 0.5}}},
              {2, {{"loss", 0.25}, {"accuracy", 1}, {"epoch_seconds", 3}}}}),
      record({{1, {{"loss", 5}, {"accuracy", 0}, {"validation_loss", 1}, {"validation_accuracy", 0}}},
              {2, {{"loss", 0}, {"accuracy", 0.5}, {"epoch_seconds", 7}}}})};
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i].metrics = {{"test_loss", static_cast<double>(i)}, {"test_accuracy", 0.5}};
  const auto aggregate = spreads_of(completed(runs).value());
  ASSERT_EQ(aggregate.size(), 2u);
  const auto mean = [&](std::size_t epoch, const char* key) {
    const auto found = aggregate[epoch].values.find(metric(key));
    return found == aggregate[epoch].values.end() ? -1 : found->second.mean;
  };
  const auto deviation = [&](std::size_t epoch, const char* key) {
    return aggregate[epoch].values.at(metric(key)).deviation;
  };
  EXPECT_EQ(aggregate[0].epoch, 1);
  EXPECT_EQ(aggregate[1].epoch, 2);
  EXPECT_EQ(mean(0, "loss"), 3);
  EXPECT_EQ(deviation(0, "loss"), 2);  // ((1−3)² + 0 + (5−3)²) / 2 = 4
  EXPECT_EQ(mean(0, "accuracy"), 0.25);
  EXPECT_EQ(deviation(0, "accuracy"), 0.25);
  EXPECT_EQ(mean(0, "validation_loss"), 2);
  EXPECT_EQ(mean(0, "validation_accuracy"), 0.25);
  EXPECT_EQ(mean(0, "test_loss"), -1) << "is of the last epoch";
  EXPECT_EQ(mean(1, "loss"), 0.25);
  EXPECT_EQ(mean(1, "epoch_seconds"), 4);
  EXPECT_EQ(mean(1, "validation_loss"), -1) << "was not measured";
  EXPECT_EQ(mean(1, "test_loss"), 1);
  EXPECT_EQ(deviation(1, "test_loss"), 1);
  EXPECT_EQ(deviation(1, "test_accuracy"), 0);
}

// Runs that were stopped early have their own lengths.
TEST(SpreadsOf, GoesAsFarAsEveryRunAndBeginsBeforeTrainingIfAllDo) {
  std::vector<RunRecord> runs = {record({{1, {{"loss", 1}}}, {2, {{"loss", 1}}}}),
                                 record({{1, {{"loss", 3}}}})};
  runs[0].untrained = EpochRecord{0, {{"validation_loss", 2}}};
  EXPECT_EQ(spreads_of(completed(runs).value()).size(), 1u);
  EXPECT_EQ(spreads_of(completed(runs).value())[0].epoch, 1);
  runs[1].untrained = EpochRecord{0, {{"validation_loss", 4}}};
  const auto aggregate = spreads_of(completed(runs).value());
  ASSERT_EQ(aggregate.size(), 2u);
  EXPECT_EQ(aggregate.at(0).epoch, 0);
  EXPECT_EQ(aggregate.at(0).values.at(metric("validation_loss")).mean, 3);
  EXPECT_FALSE(aggregate.at(0).values.contains(metric("loss")));
  EXPECT_EQ(aggregate.at(1).values.at(metric("loss")).mean, 2);
}

TEST(CompletedRepeats, AreTwoOrMore) {
  EXPECT_FALSE(completed({}));
  EXPECT_FALSE(completed({record({{1, {{"loss", 1}}}})}));
  const std::vector<RunRecord> one_failed = {record({{1, {{"loss", 1}}}}),
                                             record({{1, {{"loss", 9}}}}, RunStatus::kFailed)};
  EXPECT_FALSE(completed(one_failed));
  const std::vector<RunRecord> one_of_three_failed = {record({{1, {{"loss", 1}}}}),
                                                      record({{1, {{"loss", 9}}}}, RunStatus::kFailed),
                                                      record({{1, {{"loss", 2}}}})};
  EXPECT_EQ(spreads_of(completed(one_of_three_failed).value())[0].values.at(metric("loss")).mean, 1.5)
      << "the failed run counts not";
}

TEST(SpreadsOf, KeepsNaNWhereverItStandsAndLeavesOutWhatWasNotMeasured) {
  for (const std::size_t place : {0u, 1u}) {
    std::vector<RunRecord> runs = {record({{1, {{"loss", 1}}}}), record({{1, {{"loss", 1}}}})};
    runs[place].epochs[0].set("loss", std::numeric_limits<double>::quiet_NaN());
    const auto aggregate = spreads_of(completed(runs).value());
    EXPECT_TRUE(std::isnan(aggregate.at(0).values.at(metric("loss")).mean));
    EXPECT_TRUE(std::isnan(aggregate.at(0).values.at(metric("loss")).deviation));
    EXPECT_FALSE(aggregate.at(0).values.contains(metric("validation_loss")));
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
  // That of repeated_sweep(3) with other settings, of one epoch.
  static Sweep changed_sweep() {
    Sweep changed = repeated_sweep(3);
    for (RunConfig& run : changed.runs) {
      run.resolved["epochs"] = run.epochs = 1;
      run.resolved["seed"] = 8;
    }
    return changed;
  }
  fs::path means() const { return world_.options.logdir / "small.mean"; }
  fs::path mean(const std::string& combination = "lr=0.5") const { return means() / combination; }
  World world_;
};

TEST_F(AggregateRunsTest, StandBesideTheSweepWithTheSameTagsAndTheDeviations) {
  world_.run(repeated_sweep(3));
  EXPECT_THAT(points(mean(), "Loss/train"), ElementsAre(2, 1));
  EXPECT_THAT(points(mean(), "Std/Loss/train"), ElementsAre(1, 0.5));
  EXPECT_THAT(points(mean(), "Accuracy/train"), ElementsAre(0.5, 0.5));
  EXPECT_THAT(points(mean(), "Std/Accuracy/train"), ElementsAre(0, 0));
  EXPECT_THAT(points(mean(), "Loss/validation"), ElementsAre(0.25, 0.25));
  EXPECT_THAT(points(mean(), "Accuracy/validation"), ElementsAre(1, 1));
  EXPECT_THAT(points(mean(), "Loss/test"), ElementsAre(0.25)) << "at the last epoch";
  EXPECT_FALSE(fs::exists(mean() / "run.json"));
  EXPECT_THAT(read_file(world_.path("results.csv")), HasSubstr("\nlr=0.5,mean,2,1,"));
  EXPECT_EQ(directories(world_.path("")).size(), 2u * 3) << "no more runs than were trained";
  EXPECT_EQ(directories(means()), (std::set<std::string>{"lr=0.5", "lr=0.25"}));
}

TEST_F(AggregateRunsTest, HaveARowInTheTableOfHyperparametersAndALayout) {
  world_.run(repeated_sweep(2));
  const auto events = read_run(mean());
  const auto sessions = values_of(events, "_hparams_/session_start_info");
  ASSERT_EQ(sessions.size(), 1u);
  proto::HParamsPluginData data;
  ASSERT_TRUE(data.ParseFromString(sessions[0].metadata().plugin_data().content()));
  EXPECT_EQ(data.session_start_info().hparams().size(), 2u);
  EXPECT_EQ(data.session_start_info().hparams().at("lr").number_value(), 0.5);
  EXPECT_EQ(values_of(events, "_hparams_/session_end_info").size(), 1u);
  EXPECT_EQ(values_of(events, "custom_scalars__config__").size(), 1u);
}

TEST_F(AggregateRunsTest, OfCombinationsThatHaveAnotherNameNowAreRemoved) {
  world_.run(repeated_sweep(2));
  Sweep sweep = repeated_sweep(2);
  std::vector<Params> params;
  for (RunConfig& run : sweep.runs) {
    run.params.insert(run.params.begin(), {"mirror", run.params.front().second});
    params.push_back(run.params);
  }
  const auto names = run_names(params);
  for (std::size_t i = 0; i < names.size(); ++i) sweep.runs[i].name = names[i];
  const std::size_t trained = world_.training.batches;
  world_.run(sweep);
  EXPECT_EQ(world_.training.batches, trained) << "the runs were adopted";
  EXPECT_EQ(directories(means()), (std::set<std::string>{"mirror=0.5,lr=0.5", "mirror=0.25,lr=0.25"}));
  world_.options.replace = true;
  world_.run(small_sweep());  // without repeats
  EXPECT_FALSE(fs::exists(means()));
}

TEST(AggregateRuns, AreNotThereWithoutRepeatsWithOneOrForSkippedRuns) {
  Sweep skipped = repeated_sweep(2);
  for (RunConfig& run : skipped.runs) run.device = "cuda";
  for (const Sweep& sweep : {small_sweep(), repeated_sweep(1), skipped}) {
    World world;
    const SweepOutcome outcome = world.run(sweep);
    std::set<std::string> names;
    for (const RunRecord& run : outcome.runs) names.insert(run.name);
    EXPECT_EQ(directories(outcome.directory), names);
    EXPECT_FALSE(fs::exists(world.options.logdir / "small.mean"));
  }
}

TEST_F(AggregateRunsTest, AreWrittenAnewInOneFileWhenTheSweepRunsAgain) {
  world_.run(repeated_sweep(3));
  const Sweep changed = changed_sweep();
  world_.options.replace = true;
  world_.training.engines = 1;  // so that the losses are 2, 3, 1
  world_.run(changed);
  EXPECT_THAT(points(mean(), "Loss/train"), ElementsAre(2));
  EXPECT_EQ(std::distance(fs::directory_iterator(mean()), fs::directory_iterator()), 1);
  world_.run(changed);  // everything kept
  EXPECT_THAT(points(mean(), "Loss/train"), ElementsAre(2));
}

TEST_F(AggregateRunsTest, GoWhenTheirRunsAreToBeTrainedAgainAndComeAtTheirEnd) {
  world_.run(repeated_sweep(3));
  const Sweep changed = changed_sweep();
  world_.options.replace = true;
  std::size_t seen = 0;
  world_.training.on_train = [&](const Batch& batch, std::int64_t) {
    EXPECT_EQ(fs::exists(mean()), seen++ >= 3 * 4) << "batch " << seen;
    if (seen == 3 * 4 + 1) world_.signal = 15;  // in the second combination
    return Totals{1, 1, static_cast<std::int64_t>(batch.size())};
  };
  world_.run(changed);
  EXPECT_EQ(seen, 13u);
  EXPECT_TRUE(fs::exists(mean()));
  EXPECT_FALSE(fs::exists(mean("lr=0.25")));
}

TEST(AggregateNames, DifferOnEveryFileSystem) {
  std::vector<Params> runs;
  const std::string longer(300, 'x');
  for (const std::string& text : {std::string("a"), std::string("A"), longer, longer + "y"}) {
    for (std::int64_t repeat = 0; repeat < 2; ++repeat) runs.push_back({{"text", text}, {"repeat", repeat}});
  }
  std::set<std::string> taken;
  for (const RepeatGroup& group : repeat_groups(runs)) {
    std::string name = group.name;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    EXPECT_TRUE(taken.insert(name).second) << name;
  }
  EXPECT_EQ(taken.size(), 4u);
}

}  // namespace sweep::aggregate_test
