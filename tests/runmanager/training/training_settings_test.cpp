// What of a run's settings reaches the engine and the graph.

#include "proto/tensorboard/graph.pb.h"
#include "tests/support/run_world.h"

#include "tests/support/test.h"

namespace sweep::training_settings_test {

Sweep one_run(const std::function<void(RunConfig&)>& change) {
  Sweep sweep = small_sweep();
  sweep.runs.resize(1);
  change(sweep.runs[0]);
  return sweep;
}

TEST(TrainingSettings, LossAndClippingReachTheEngine) {
  World world;
  world.run(one_run([](RunConfig& run) {
    run.loss.label_smoothing = 0.25;
    run.clip_norm = 1.5;
  }));
  EXPECT_EQ(world.training.options.loss.kind, LossOptions::Kind::kCrossEntropy);
  EXPECT_EQ(world.training.options.loss.label_smoothing, 0.25);
  EXPECT_EQ(world.training.options.clip_norm, 1.5);
  World other;
  other.run(one_run([](RunConfig& run) { run.loss.kind = LossOptions::Kind::kMse; }));
  EXPECT_EQ(other.training.options.loss.kind, LossOptions::Kind::kMse);
  EXPECT_EQ(other.training.options.clip_norm, 0);
}

TEST(TrainingSettings, WhetherBitsHaveToBeTheSameReachesTheEngine) {
  World world;
  world.run(one_run([](RunConfig& run) { run.deterministic = false; }));
  EXPECT_FALSE(world.training.options.deterministic);
  World other;
  other.run(one_run([](RunConfig&) {}));
  EXPECT_TRUE(other.training.options.deterministic);
}

TEST(TrainingSettings, TheGraphEndsWithTheLossOfTheRun) {
  World world;
  const Sweep sweep = one_run([](RunConfig& run) { run.loss.kind = LossOptions::Kind::kMse; });
  world.run(sweep);
  std::string op;
  for (const proto::Event& event : tbwriter::read_run(world.path(sweep.runs[0].name))) {
    proto::GraphDef graph;
    if (event.graph_def().empty() || !graph.ParseFromString(event.graph_def())) continue;
    for (const auto& node : graph.node()) op = node.name() == "loss" ? node.op() : op;
  }
  EXPECT_EQ(op, "MSELoss");
}

TEST(TrainingSettings, EveryStepIsTakenAsTheScheduleSays) {
  World world;
  const Sweep sweep = one_run([](RunConfig& run) { run.schedule = OneCycleSchedule{}; });
  world.run(sweep);
  ASSERT_EQ(world.training.learning_rates.size(), 8u);  // 2 epochs of 4 batches
  const ScheduleOptions schedule = sweep.runs[0].schedule;
  for (int i = 0; i < 8; ++i) {
    const StepValues values =
        values_at(schedule, 0.5, {.epoch = i / 4, .step = i % 4, .epochs = 2, .steps_per_epoch = 4});
    const auto step = static_cast<std::size_t>(i);
    EXPECT_EQ(world.training.learning_rates[step], values.learning_rate);
    EXPECT_EQ(world.training.momenta.at(step), values.momentum.value());
  }
  EXPECT_EQ(std::get<SgdOptions>(world.training.options.optimizer).momentum, 0.95) << "as in PyTorch";
  const auto scalars = last_scalars(tbwriter::read_run(world.path(sweep.runs[0].name)));
  EXPECT_EQ(scalars.at("Optimizer/lr"), static_cast<float>(world.training.learning_rates[4]))
      << "the epoch's first";
}

TEST(TrainingSettings, SchedulesByEpochKeepTheRateInTheEpoch) {
  World world;
  world.run(one_run([](RunConfig& run) { run.schedule = StepSchedule{}; }));
  EXPECT_THAT(world.training.learning_rates, ElementsAre(0.5, 0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.05));
  EXPECT_TRUE(world.training.momenta.empty());
  EXPECT_EQ(std::get<SgdOptions>(world.training.options.optimizer).momentum, 0);
}

}  // namespace sweep::training_settings_test
