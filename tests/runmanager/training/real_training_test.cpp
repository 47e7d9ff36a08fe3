// The profile of the graph that a sweep with the CPU's engine leaves, and how it ends if it diverges.

#include "proto/tensorboard/graph.pb.h"
#include "runmanager/training/run_evaluation.h"
#include "tests/support/quarters.h"
#include "tests/support/run_world.h"
#include "tests/support/tensor_bytes.h"

namespace sweep::real_training_test {

class RealTraining : public ::testing::Test, protected Quarters {};

std::vector<proto::TaggedRunMetadata> profiles_of(const std::vector<proto::Event>& events) {
  std::vector<proto::TaggedRunMetadata> profiles;
  for (const proto::Event& event : events) {
    if (event.has_tagged_run_metadata()) profiles.push_back(event.tagged_run_metadata());
  }
  return profiles;
}

TEST_F(RealTraining, ShowsTimeAndMemoryOfTheGraphsNodesOnce) {
  const SweepOutcome outcome = run("runs", {"batch_size=30", "num_workers=0"});
  const auto events = tbwriter::read_run(run_directory(outcome));
  std::set<std::string> graph;
  for (const proto::Event& event : events) {
    proto::GraphDef def;
    if (event.graph_def().empty() || !def.ParseFromString(event.graph_def())) continue;
    for (const auto& node : def.node()) graph.insert(node.name());
  }
  const auto profiles = profiles_of(events);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].tag(), "step of 30 samples, fused layers share their time by FLOPs");
  proto::RunMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(profiles[0].run_metadata()));
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  const auto& device = metadata.step_stats().dev_stats(0);
  EXPECT_EQ(device.device(), "/device:CPU:0");
  std::size_t busy = 0;
  for (const auto& node : device.node_stats()) {
    EXPECT_TRUE(graph.contains(node.node_name())) << node.node_name();
    ASSERT_EQ(node.output_size(), 1) << "the page breaks on a node without";
    EXPECT_GT(node.memory(0).total_bytes(), 0) << node.node_name() << " would be drawn as unused";
    if (node.all_end_rel_micros() == 0) continue;
    ++busy;
    EXPECT_EQ(node.output(0).tensor_description().shape().dim(0).size(), 30);
  }
  EXPECT_EQ(static_cast<std::size_t>(device.node_stats_size()), graph.size());
  EXPECT_EQ(busy, 6u) << "one operation per layer";
}

TEST_F(RealTraining, WithoutTheGraphHasNoProfileAndTheSameBits) {
  const SweepOutcome with = run("with"), without = run("without", {"log.graph=false"});
  for (std::size_t i = 0; i < with.runs.size(); ++i) {
    EXPECT_TRUE(profiles_of(tbwriter::read_run(run_directory(without, i))).empty());
    EXPECT_TRUE(test::same_bytes(test::tensor_bytes(run_directory(with, i) / "checkpoint.safetensors"),
                                 test::tensor_bytes(run_directory(without, i) / "checkpoint.safetensors")));
    EXPECT_EQ(with.runs[i].epochs.back()["loss"], without.runs[i].epochs.back()["loss"]);
  }
}

TEST(CheckTrainingLoss, NamesTheBatchAndLeavesOutTheSignOfNaN) {
  Totals totals;
  totals.loss = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  EXPECT_EQ(test::message_of<DivergedError>(
                [&] { check_training_loss(totals, {.epoch = 2, .begin = 4, .end = 5, .lr = 0.5}); }),
            "diverged at epoch 2, batch 5: the loss is nan; try a smaller lr than 0.5");
}

}  // namespace sweep::real_training_test
