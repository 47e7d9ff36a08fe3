// Whole sweeps with the CPU's engine on a data set that can be learned in a moment.

#include <fmt/format.h>

#include "core/data/safetensors.h"
#include "proto/tensorboard/graph.pb.h"
#include "tests/support/quarters.h"
#include "tests/support/run_world.h"

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
    const auto file = [&](const SweepOutcome& outcome) {
      return read_safetensors(run_directory(outcome, i) / "checkpoint.safetensors");
    };
    for (const char* name : {"conv1.weight", "conv1.bias", "out.weight", "out.bias"})
      EXPECT_EQ(TensorIndex(file(with)).find(name)->values, TensorIndex(file(without)).find(name)->values)
          << name;
    EXPECT_EQ(with.runs[i].epochs.back()["loss"], without.runs[i].epochs.back()["loss"]);
  }
}

// tag -> steps of every scalar and histogram, in the order of the files.
std::map<std::string, std::vector<std::int64_t>> steps_of(const fs::path& run) {
  std::map<std::string, std::vector<std::int64_t>> steps;
  for (const proto::Event& event : tbwriter::read_run(run)) {
    for (const auto& value : event.summary().value()) steps[value.tag()].push_back(event.step());
  }
  return steps;
}

TEST_F(RealTraining, StoppedAnywhereGoesOnFromTheLastFinishedEpochToTheSameBits) {
  const std::vector<std::string> overrides = {"batch_size=20", "epochs=4", "log.batches=3", "num_workers=0"};
  const SweepOutcome whole = run("whole", overrides);
  const auto whole_steps = steps_of(run_directory(whole));
  // A run looks for signals after each of the 10 batches of an epoch, 2 of validation and 3 of the test.
  for (const int looks : {1, 5, 11, 12, 13, 14, 25, 40, 47, 49, 51, 52, 53}) {
    const std::string logdir = "stopped" + std::to_string(looks);
    const SweepOutcome stopped = run_stopping(looks, logdir, sweep(overrides));
    EXPECT_EQ(stopped.exit_code, 143);
    const SweepOutcome resumed = run(logdir, overrides);
    EXPECT_EQ(resumed.exit_code, 0);
    EXPECT_EQ(bits_of(resumed), bits_of(whole)) << looks;
    EXPECT_EQ(steps_of(run_directory(resumed)), whole_steps) << looks;
    for (std::size_t epoch = 0; epoch < stopped.runs[0].epochs.size(); ++epoch) {
      EXPECT_EQ(resumed.runs[0].epochs[epoch]["epoch_seconds"],
                stopped.runs[0].epochs[epoch]["epoch_seconds"])
          << "a finished epoch was trained again";
    }
    EXPECT_GE(resumed.runs[0].run_seconds.value(), resumed.runs[0].epochs.back()["run_seconds"]);
  }
}

}  // namespace sweep::real_training_test
