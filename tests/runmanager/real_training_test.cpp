// Whole sweeps with the CPU's engine on a data set that can be learned in a moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/data/safetensors.h"
#include "proto/graph.pb.h"
#include "runmanager/sweep_file.h"
#include "runmanager/sweep_runner.h"
#include "tests/runmanager/run_world.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::string idx_header(std::initializer_list<std::uint32_t> extents) {
  std::string header = {0, 0, 8, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(extent >> shift);
  }
  return header;
}

// Pictures of 8x8 with one bright quarter out of four, which is the class.
void write_quarters(const fs::path& directory, const std::string& part, std::uint32_t count) {
  std::string images = idx_header({count, 8, 8}), labels = idx_header({count});
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t label = (i * 7 + i / 4) % 4;
    labels += static_cast<char>(label);
    for (std::uint32_t y = 0; y < 8; ++y) {
      for (std::uint32_t x = 0; x < 8; ++x) {
        const bool bright = (y / 4) * 2 + x / 4 == label;
        images += static_cast<char>((bright ? 160 : 20) + (i * 31 + y * 17 + x * 13) % 64);
      }
    }
  }
  fs::create_directories(directory);
  tbwriter::spill(directory / (part + "-images-idx3-ubyte"), images);
  tbwriter::spill(directory / (part + "-labels-idx1-ubyte"), labels);
}

class RealTraining : public ::testing::Test {
 protected:
  RealTraining() {
    write_quarters(directory_ / "data", "train", 240);
    write_quarters(directory_ / "data", "t10k", 60);
    tbwriter::spill(directory_ / "quarters.json", R"({
      "name": "quarters",
      "dataset": {"name": "quarters", "path": "data", "validation": 40},
      "network": {"name": "net", "layers": [
        {"name": "conv1", "type": "conv2d", "out_channels": 4, "kernel_size": 3},
        {"name": "relu1", "type": "relu"},
        {"name": "pool1", "type": "max_pool2d", "kernel_size": 2},
        {"name": "flatten", "type": "flatten"},
        {"name": "out", "type": "linear", "out_features": 4}]},
      "optimizer": "adam", "epochs": 6, "seed": 3,
      "params": {"lr": [0.02], "batch_size": [20, 30], "num_workers": [0, 2]}})");
  }

  SweepOutcome run(const std::string& logdir, int threads = 1,
                   const std::vector<std::string>& overrides = {}) {
    SweepEnvironment environment;
    environment.terminal = {};
    environment.out = &out_;
    return run_sweep(load_sweep(directory_ / "quarters.json", overrides),
                     {.logdir = directory_.path() / logdir, .threads = threads}, environment);
  }

  TemporaryDirectory directory_;
  std::ostringstream out_;
};

TEST_F(RealTraining, LearnsAndRecordsIt) {
  const SweepOutcome outcome = run("runs");
  EXPECT_EQ(outcome.exit_code, 0);
  ASSERT_EQ(outcome.runs.size(), 4u);
  for (const RunRecord& record : outcome.runs) {
    ASSERT_EQ(record.epochs.size(), 6u) << record.name;
    EXPECT_LT(record.epochs.back().loss, record.epochs.front().loss) << record.name;
    EXPECT_GE(record.epochs.back().validation_accuracy.value(), 0.95) << record.name;
    EXPECT_GE(record.metrics.at("test_accuracy"), 0.95) << record.name;
    // The events hold what the results say, as floats.
    const auto scalars = last_scalars(tbwriter::read_run(outcome.directory / record.name));
    EXPECT_EQ(scalars.at("Loss/train"), static_cast<float>(record.epochs.back().loss));
    EXPECT_EQ(scalars.at("Accuracy/validation"),
              static_cast<float>(*record.epochs.back().validation_accuracy));
  }
}

TEST_F(RealTraining, GivesTheSameBitsForAnyNumberOfWorkersAndThreads) {
  const SweepOutcome one = run("one", 1);
  const SweepOutcome three = run("three", 3);
  for (std::size_t i = 0; i < one.runs.size(); i += 2) {
    const auto weights = [](const SweepOutcome& outcome, std::size_t run) {
      return read_safetensors(outcome.directory / outcome.runs[run].name / "checkpoint.safetensors")
          .find("conv1.weight")
          ->values;
    };
    EXPECT_EQ(weights(one, i), weights(one, i + 1)) << "0 and 2 workers";
    EXPECT_EQ(weights(one, i), weights(three, i)) << "1 and 3 threads";
    EXPECT_EQ(one.runs[i].epochs.back().loss, three.runs[i + 1].epochs.back().loss);
  }
}

std::vector<proto::TaggedRunMetadata> profiles_of(const std::vector<proto::Event>& events) {
  std::vector<proto::TaggedRunMetadata> profiles;
  for (const proto::Event& event : events) {
    if (event.has_tagged_run_metadata()) profiles.push_back(event.tagged_run_metadata());
  }
  return profiles;
}

TEST_F(RealTraining, ShowsTimeAndMemoryOfTheGraphsNodesOnce) {
  const SweepOutcome outcome = run("runs", 2, {"batch_size=30", "num_workers=0"});
  const auto events = tbwriter::read_run(outcome.directory / outcome.runs.at(0).name);
  std::set<std::string> graph;
  for (const proto::Event& event : events) {
    proto::GraphDef def;
    if (event.graph_def().empty() || !def.ParseFromString(event.graph_def())) continue;
    for (const auto& node : def.node()) graph.insert(node.name());
  }
  const auto profiles = profiles_of(events);
  ASSERT_EQ(profiles.size(), 1u);
  EXPECT_EQ(profiles[0].tag(), "step of 30 samples");
  proto::RunMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(profiles[0].run_metadata()));
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  const auto& device = metadata.step_stats().dev_stats(0);
  EXPECT_EQ(device.device(), "/device:CPU:0");
  std::vector<std::string> busy;
  for (const auto& node : device.node_stats()) {
    EXPECT_TRUE(graph.contains(node.node_name())) << node.node_name();
    ASSERT_EQ(node.output_size(), 1) << "the page breaks on a node without";
    EXPECT_EQ(node.output(0).tensor_description().shape().dim(0).size(), 30);
    if (node.all_end_rel_micros() > 0 && node.memory(0).total_bytes() > 0) busy.push_back(node.node_name());
  }
  EXPECT_EQ(device.node_stats_size(), 5);
  EXPECT_THAT(busy, ::testing::ElementsAre("net/conv1/Conv2d", "net/out/Linear"));
}

TEST_F(RealTraining, WithoutTheGraphHasNoProfileAndTheSameBits) {
  const SweepOutcome with = run("with"), without = run("without", 1, {"log.graph=false"});
  for (std::size_t i = 0; i < with.runs.size(); ++i) {
    EXPECT_TRUE(profiles_of(tbwriter::read_run(without.directory / without.runs[i].name)).empty());
    const auto file = [&](const SweepOutcome& outcome) {
      return read_safetensors(outcome.directory / outcome.runs[i].name / "checkpoint.safetensors");
    };
    for (const char* name : {"conv1.weight", "conv1.bias", "out.weight", "out.bias"})
      EXPECT_EQ(file(with).find(name)->values, file(without).find(name)->values) << name;
    EXPECT_EQ(with.runs[i].epochs.back().loss, without.runs[i].epochs.back().loss);
  }
}

TEST_F(RealTraining, OfTheSameCommandKeepsEverything) {
  const SweepOutcome first = run("runs");
  const SweepOutcome second = run("runs");
  for (std::size_t i = 0; i < first.runs.size(); ++i) {
    EXPECT_EQ(second.runs[i].run_seconds, first.runs[i].run_seconds) << "trained again";
  }
}

TEST_F(RealTraining, GoesOnFromItsOwnCheckpointsWeights) {
  const SweepOutcome first = run("runs");
  const fs::path weights = directory_ / "weights.safetensors";
  fs::copy_file(first.directory / first.runs[0].name / "checkpoint.safetensors", weights);
  const SweepOutcome second = run("more", 1, {"init=" + weights.string(), "epochs=1"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_LT(second.runs[0].epochs[0].loss, first.runs[0].epochs[0].loss / 2);
}

}  // namespace
}  // namespace sweep
