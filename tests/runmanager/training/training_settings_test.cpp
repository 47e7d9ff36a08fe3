// What of a run's settings reaches the engine and the graph.

#include "proto/tensorboard/graph.pb.h"
#include "runmanager/config/metrics.h"
#include "runmanager/tensorboard/run_log.h"
#include "runmanager/training/epoch_watch.h"
#include "runmanager/training/evaluation.h"
#include "tests/support/run_world.h"

namespace sweep::training_settings_test {

class TrainingSettings : public ::testing::Test, protected World {};

Sweep one_run(const std::function<void(RunConfig&)>& change) {
  Sweep sweep = small_sweep(1);
  change(sweep.runs[0]);
  return sweep;
}

TEST_F(TrainingSettings, LossClippingAndWhetherBitsHaveToBeTheSameReachTheEngine) {
  run(one_run([](RunConfig& run) {
    run.loss.label_smoothing = 0.25;
    run.clip_norm = 1.5;
    run.deterministic = false;
  }));
  EXPECT_EQ(training.options.loss.kind, LossOptions::Kind::kCrossEntropy);
  EXPECT_EQ(training.options.loss.label_smoothing, 0.25);
  EXPECT_EQ(training.options.clip_norm, 1.5);
  EXPECT_FALSE(training.options.deterministic);
  World other;
  other.run(one_run([](RunConfig& run) { run.loss.kind = LossOptions::Kind::kMse; }));
  EXPECT_EQ(other.training.options.loss.kind, LossOptions::Kind::kMse);
  EXPECT_EQ(other.training.options.clip_norm, 0);
  EXPECT_TRUE(other.training.options.deterministic);
}

TEST_F(TrainingSettings, TheGraphEndsWithTheLossOfTheRun) {
  const Sweep sweep = one_run([](RunConfig& run) { run.loss.kind = LossOptions::Kind::kMse; });
  run(sweep);
  std::string op;
  for (const proto::Event& event : tbwriter::read_run(path(sweep.runs[0].name))) {
    proto::GraphDef graph;
    if (event.graph_def().empty() || !graph.ParseFromString(event.graph_def())) continue;
    for (const auto& node : graph.node()) op = node.name() == "loss" ? node.op() : op;
  }
  EXPECT_EQ(op, "MSELoss");
}

TEST_F(TrainingSettings, EveryStepIsTakenAsTheScheduleSays) {
  const Sweep sweep = one_run([](RunConfig& run) { run.schedule = OneCycleSchedule{}; });
  run(sweep);
  ASSERT_EQ(training.learning_rates.size(), 8u);  // 2 epochs of 4 batches
  const ScheduleOptions schedule = sweep.runs[0].schedule;
  for (int i = 0; i < 8; ++i) {
    const StepValues values =
        values_at(schedule, 0.5, {.epoch = i / 4, .step = i % 4, .epochs = 2, .steps_per_epoch = 4});
    const auto step = static_cast<std::size_t>(i);
    EXPECT_EQ(training.learning_rates[step], values.learning_rate);
    EXPECT_EQ(training.momenta.at(step), values.momentum.value());
  }
  EXPECT_EQ(std::get<SgdOptions>(training.options.optimizer).momentum, 0.95) << "as in PyTorch";
  const auto scalars = last_scalars(tbwriter::read_run(path(sweep.runs[0].name)));
  EXPECT_EQ(scalars.at("Optimizer/lr"), static_cast<float>(training.learning_rates[4]))
      << "the epoch's first";
}

TEST_F(TrainingSettings, SchedulesByEpochKeepTheRateInTheEpoch) {
  run(one_run([](RunConfig& run) { run.schedule = StepSchedule{}; }));
  EXPECT_THAT(training.learning_rates, ElementsAre(0.5, 0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.05));
  EXPECT_TRUE(training.momenta.empty());
  EXPECT_EQ(std::get<SgdOptions>(training.options.optimizer).momentum, 0);
}

// Passes that do not train.

TEST(Evaluation, WeighsClassesOverAllSamplesWhateverTheBatches) {
  const Dataset data = small_dataset();
  const Network network(small_network(), data.shape);
  LossOptions loss;
  for (std::size_t c = 0; c < data.class_names.size(); ++c)
    loss.class_weights.push_back(c == 1 ? 0.0f : c % 2 == 0 ? 10.0f : 0.1f);
  const auto mean_loss = [&](std::size_t batch_size) {
    const auto engine = make_engine(
        network,
        {.device = parse_device("cpu"), .batch_size = batch_size, .transform = data.transform, .loss = loss});
    engine->set_parameters(initial_parameters(network, 1));
    const Totals totals = evaluate_samples(*engine, data.train, batch_size, loss.class_weights, [] {});
    std::vector<float> outputs(data.train.count * element_count(network.output()));
    const Totals other = evaluate_samples(
        *engine, data.train, batch_size, loss.class_weights, [] {}, &outputs);
    EXPECT_EQ(totals.loss, other.loss);
    EXPECT_EQ(outputs,
              predict_samples(*engine, data.train, element_count(network.output()), batch_size, [] {}));
    EXPECT_EQ(totals.samples, static_cast<std::int64_t>(data.train.count));
    return totals.loss / static_cast<double>(totals.samples);
  };
  for (const double smoothing : {0.0, 0.2}) {
    loss.label_smoothing = smoothing;
    const double whole = mean_loss(data.train.count);
    for (const std::size_t batch_size : {1, 3, 7})  // a batch may have no weight
      EXPECT_NEAR(mean_loss(batch_size), whole, 1e-6) << smoothing;
  }
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Ended {
  int best, epoch;  // 0: none; not ended
  bool operator==(const Ended&) const = default;
};

// Shows the losses of epochs 1, 2, … to a watch until it ends the run.
Ended watch(const StopSpec& stop, const std::vector<double>& losses) {
  EpochWatch watch(stop);
  int number = 0, best = 0;
  for (const double loss : losses) {
    const bool might = watch.may_end();
    const bool better = watch.add({++number, {{"validation_loss", loss}}});
    EXPECT_EQ(watch.has_ended(), might && !better);
    if (better) best = number;
    if (watch.has_ended()) return {best, number};
  }
  return {best, 0};
}

// Expected values by hand, from the rule of Keras and Lightning: an epoch counts as better if it is so by
// more than min_delta; after `patience` in a row that do not, the run ends.
TEST(EpochWatch, EndsAfterPatienceEpochsWithoutImprovement) {
  const StopSpec one{.patience = 1}, two{.patience = 2};
  EXPECT_EQ(watch(two, {5, 4, 3, 2, 1}), (Ended{5, 0}));
  EXPECT_EQ(watch(one, {5, 5}), (Ended{1, 2})) << "a tie is no improvement";
  EXPECT_EQ(watch(two, {5, 6, 4, 5, 4, 3}), (Ended{3, 5})) << "the 6 does not count any more";
  EXPECT_EQ(watch(two, {3, 4}), (Ended{1, 0}));
  EXPECT_EQ(watch({.goal = asked_goal("Loss/validation", true), .patience = 2}, {1, 3, 2, 2.5, 9}),
            (Ended{2, 4}));
  EXPECT_EQ(watch({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.5, 1}), (Ended{1, 3})) << "exactly min_delta";
  EXPECT_EQ(watch({.patience = 2, .min_delta = 0.5}, {5, 4.6, 4.4, 4}), (Ended{3, 0}));
  EXPECT_EQ(watch({.patience = 2, .min_delta = 1e300}, {5, -5, 1}), (Ended{1, 3}));
  EXPECT_EQ(watch(two, {kNan, 4, kNan, kNan}), (Ended{2, 4}));
  EXPECT_EQ(watch(two, {kNan, kNan}), (Ended{0, 2}));
  EXPECT_EQ(watch({.patience = 0}, {1, 2, 3, 4, 5, 6}), (Ended{1, 0})) << "only looks for the best";
}

// A program may validate after some of its reports only.
TEST(EpochWatch, DoesNotCountEpochsWithoutTheMetric) {
  EpochWatch watch({.patience = 2});
  for (int epoch = 1; epoch <= 20; ++epoch) {
    EpochRecord record(epoch, {{"loss", 1}});
    if (epoch % 5 == 0) record.set("validation_loss", 1);
    EXPECT_EQ(watch.add(record), epoch == 5) << epoch;
    EXPECT_EQ(watch.has_ended(), epoch >= 15) << epoch;
  }
}

TEST(EpochWatch, SaysWhyARunEnded) {
  EpochWatch watch({.patience = 1, .min_delta = 0.25});
  watch.add({1, {{"validation_loss", 2}}});
  watch.add({2, {{"validation_loss", 1.9}}});
  EXPECT_EQ(watch.reason(),
            "Loss/validation has not improved by more than 0.25 for 1 epoch; it was best in epoch "
            "1: 2.0000");
  EpochWatch small({.patience = 1});
  small.add({1, {{"validation_loss", 2.5e-6}}});
  small.add({2, {{"validation_loss", 3e-6}}});
  EXPECT_THAT(small.reason(), EndsWith("it was best in epoch 1: 2.5e-06"));
  EpochWatch never({.goal = asked_goal("R2/validation", true), .patience = 1});
  never.add({1, {{"validation_r2", kNan}}});
  EXPECT_EQ(never.reason(), "R2/validation has not improved for 1 epoch");
}

TEST(WatchableMetrics, AreTheTagsOfAnEpochsPoints) {
  EpochRecord epoch(1);
  for (const Metric& metric : metrics()) {
    if (metric.part == MetricPart::kTraining || metric.part == MetricPart::kValidation)
      epoch.set(metric.key, 1);
  }
  std::vector<std::string> tags;
  for (const auto& point : epoch_points(epoch)) {
    const bool is_time = point.tag.starts_with("Time/") || point.tag.starts_with("Duration/");
    if (!is_time) tags.emplace_back(point.tag);
  }
  std::vector<std::string> known = watchable_tags();
  std::ranges::sort(tags);
  std::ranges::sort(known);
  EXPECT_EQ(tags, known);
}

}  // namespace sweep::training_settings_test
