// What of a run's settings reaches the engine and the graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/graph.pb.h"
#include "tests/runmanager/run_world.h"

namespace sweep {
namespace {

Sweep one_run(const std::function<void(RunConfig&)>& change) {
  Sweep sweep = small_sweep();
  sweep.runs.resize(1);
  change(sweep.runs[0]);
  return sweep;
}

TEST(TrainingSettings, LossAndClippingReachTheEngine) {
  World world;
  world.run(one_run([](RunConfig& run) {
    run.loss = {"cross_entropy", {{"label_smoothing", 0.25}}};
    run.clip_norm = 1.5;
  }));
  EXPECT_EQ(world.training.options.loss.kind, LossOptions::Kind::kCrossEntropy);
  EXPECT_EQ(world.training.options.loss.label_smoothing, 0.25);
  EXPECT_EQ(world.training.options.clip_norm, 1.5);
  World other;
  other.run(one_run([](RunConfig& run) { run.loss.type = "mse"; }));
  EXPECT_EQ(other.training.options.loss.kind, LossOptions::Kind::kMse);
  EXPECT_EQ(other.training.options.clip_norm, 0);
}

TEST(TrainingSettings, TheGraphEndsWithTheLossOfTheRun) {
  World world;
  const Sweep sweep = one_run([](RunConfig& run) { run.loss.type = "mse"; });
  world.run(sweep);
  std::string op;
  for (const proto::Event& event : tbwriter::read_run(world.path(sweep.runs[0].name))) {
    proto::GraphDef graph;
    if (event.graph_def().empty() || !graph.ParseFromString(event.graph_def())) continue;
    for (const auto& node : graph.node()) op = node.name() == "loss" ? node.op() : op;
  }
  EXPECT_EQ(op, "MSELoss");
}

}  // namespace
}  // namespace sweep
