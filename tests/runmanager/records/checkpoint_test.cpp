#include "runmanager/records/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"
#include "core/data/safetensors.h"
#include "core/engine/engine.h"
#include "runmanager/config/config_reader.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using ::testing::HasSubstr;

NetworkSpec spec(bool batch_norm) {
  NetworkSpec network;
  network.name = "net";
  network.layers = {
      {"conv", "conv2d", {{"out_channels", std::int64_t{2}}, {"kernel_size", std::int64_t{1}}}}};
  if (batch_norm) network.layers.push_back({"norm", "batch_norm2d", {}});
  network.layers.push_back({"flatten", "flatten", {}});
  network.layers.push_back({"out", "linear", {{"out_features", std::int64_t{3}}}});
  return network;
}

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i) / 3;
  return values;
}

void write(const std::filesystem::path& path, const Network& network, const Checkpoint& checkpoint) {
  CheckpointMetadata metadata;
  update(metadata, checkpoint.progress.record, checkpoint.progress.position);
  write_checkpoint(path, network, checkpoint.state, metadata, Survives::kKill);
}

std::string text_of(const RunRecord& record) { return to_json(record).dump(); }

Checkpoint some_checkpoint(const Network& network) {
  Checkpoint checkpoint;
  checkpoint.state = {{counting(network.parameter_count(), 1), counting(network.buffer_count(), 900)},
                      {{"exp_avg", counting(network.parameter_count(), -5)},
                       {"exp_avg_sq", counting(network.parameter_count(), 2)}},
                      12345678901,
                      R"({"device":"a GPU"})"};
  checkpoint.progress.record.name = "lr=0.1";
  checkpoint.progress.record.params = {{"lr", 0.1}};
  checkpoint.progress.record.config = {{"seed", 3}};
  checkpoint.progress.record.provenance = {{"program", "sweep"}};
  EpochRecord epoch;
  epoch.loss = 1.0 / 3;
  epoch.validation_loss = std::numeric_limits<double>::infinity();
  epoch.validation_accuracy = 0.1;
  epoch.epoch_seconds = 0.30000000000000004;
  checkpoint.progress.record.epochs = {epoch};
  checkpoint.progress.position = {"events.out.tfevents.1.host.2.0", 1ull << 40, 77};
  return checkpoint;
}

TEST(Checkpoint, IsReadBackToTheSameBits) {
  const TemporaryDirectory directory;
  for (const bool batch_norm : {false, true}) {
    const Network network(spec(batch_norm), {1, 4, 4});
    EXPECT_EQ(network.buffer_count() > 0, batch_norm);
    const Checkpoint written = some_checkpoint(network);
    write(directory / "c", network, written);
    const Checkpoint read = read_checkpoint(directory / "c", network);
    EXPECT_EQ(read.state.weights.parameters, written.state.weights.parameters);
    EXPECT_EQ(read.state.weights.buffers, written.state.weights.buffers);
    ASSERT_EQ(read.state.optimizer.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(read.state.optimizer[i].name, written.state.optimizer[i].name);
      EXPECT_EQ(read.state.optimizer[i].values, written.state.optimizer[i].values);
    }
    EXPECT_EQ(read.state.step_count, written.state.step_count);
    EXPECT_EQ(read.state.kernels, written.state.kernels);
    EXPECT_EQ(text_of(read.progress.record), text_of(written.progress.record));
    EXPECT_EQ(read.progress.position, written.progress.position);
    EXPECT_EQ(read.progress.record.epochs[0].loss, 1.0 / 3);
    EXPECT_EQ(load_weights(directory / "c", network).buffers, written.state.weights.buffers);
  }
}

TEST(Checkpoint, OfOneRunAfterTheOtherEpochHoldsAllEpochs) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  Checkpoint checkpoint = some_checkpoint(network);
  CheckpointMetadata metadata;
  for (int epoch = 1; epoch < 4; ++epoch) {
    checkpoint.progress.record.epochs.push_back(checkpoint.progress.record.epochs.back());
    checkpoint.progress.record.epochs.back().epoch = epoch;
    update(metadata, checkpoint.progress.record, checkpoint.progress.position);
    write_checkpoint(directory / "c", network, checkpoint.state, metadata, Survives::kKill);
    EXPECT_EQ(text_of(read_checkpoint(directory / "c", network).progress.record),
              text_of(checkpoint.progress.record));
  }
}

TEST(Checkpoint, IsRefusedWhenCutAnywhereOrWithAFlippedBit) {
  const TemporaryDirectory directory;
  const Network network(spec(true), {1, 4, 4});
  write(directory / "good", network, some_checkpoint(network));
  const std::string good = tbwriter::slurp(directory / "good");
  const RunProgress wanted = read_checkpoint(directory / "good", network).progress;
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < good.size(); i += 3) {
    tbwriter::spill(directory / "bad", good.substr(0, i));
    EXPECT_THROW(read_checkpoint(directory / "bad", network), DataError) << "cut at " << i;
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    tbwriter::spill(directory / "bad", flipped);
    try {
      // Names of what is not needed may differ; what training goes on from may not.
      const Checkpoint read = read_checkpoint(directory / "bad", network);
      EXPECT_EQ(text_of(read.progress.record), text_of(wanted.record));
      EXPECT_EQ(read.progress.position, wanted.position);
      EXPECT_EQ(read.state.weights.parameters, some_checkpoint(network).state.weights.parameters);
      EXPECT_EQ(read.state.kernels, some_checkpoint(network).state.kernels);
      ++accepted;
    } catch (const DataError&) {
    }
  }
  EXPECT_LT(accepted, good.size() / 20);
}

TEST(Checkpoint, OfWeightsAloneIsNothingToGoOnFrom) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4}), other(spec(true), {1, 4, 4});
  write(directory / "c", network, some_checkpoint(network));
  try {
    read_checkpoint(directory / "c", other);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("norm.weight is missing"));
  }
}

// tests/data/make_references.py wrote the file: a state_dict with running statistics and counts of batches.
TEST(LoadWeights, TakesPyTorchsStateDictWithItsBuffers) {
  const std::filesystem::path path = SWEEP_TEST_DATA "/pretrained.safetensors";
  const TensorFile file = read_safetensors(path);
  ASSERT_NE(file.find("bn.num_batches_tracked"), nullptr);
  Problems problems;
  const Network network(read_network(parse_json(file.metadata.at("network"), "network"), problems),
                        {1, 6, 6});
  ASSERT_TRUE(problems.empty());
  const Weights weights = load_weights(path, network);
  const auto engine = make_engine(network, {.device = {}, .batch_size = 2, .optimizer = {}, .transform = {}});
  engine->set_parameters(weights.parameters);
  engine->set_buffers(weights.buffers);
  const auto numbers = [&](const char* key) { return nlohmann::json::parse(file.metadata.at(key)); };
  const auto pixels = numbers("pixels").get<std::vector<std::uint8_t>>();
  const auto expected = numbers("outputs").get<std::vector<float>>();
  const std::vector<std::int32_t> labels = {0, 0};
  const std::vector<std::uint32_t> rows = {0, 1};
  std::vector<float> outputs(6);
  engine->predict({pixels, labels, rows}, outputs);
  ASSERT_EQ(expected.size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_NEAR(outputs[i], expected[i], 1e-5) << i;
}

}  // namespace
}  // namespace sweep
