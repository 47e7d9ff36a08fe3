#include "runmanager/records/checkpoint.h"

#include "core/data/safetensors.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/config_reader.h"
#include "tbwriter/record.h"
#include "tests/support/run_world.h"

namespace sweep::checkpoint_test {

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
                      12345678901};
  checkpoint.progress.record.name = "lr=0.1";
  checkpoint.progress.record.kernels = "a library";
  checkpoint.progress.record.params = {{"lr", 0.1}};
  checkpoint.progress.record.config = {{"seed", 3}};
  checkpoint.progress.record.provenance = {{"program", "sweep"}};
  EpochRecord epoch;
  epoch.set("loss", 1.0 / 3);
  epoch.set("validation_loss", std::numeric_limits<double>::infinity());
  epoch.set("validation_accuracy", 0.1);
  epoch.set("epoch_seconds", 0.30000000000000004);
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
    EXPECT_EQ(text_of(read.progress.record), text_of(written.progress.record));
    EXPECT_EQ(read.progress.position, written.progress.position);
    EXPECT_EQ(read.progress.record.epochs[0]["loss"], 1.0 / 3);
    EXPECT_EQ(load_weights(directory / "c", network).buffers, written.state.weights.buffers);
  }
}

TEST(Checkpoint, OfOneRunAfterTheOtherEpochHoldsAllEpochs) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  Checkpoint checkpoint = some_checkpoint(network);
  CheckpointMetadata metadata;
  for (int epoch = 2; epoch < 5; ++epoch) {
    checkpoint.progress.record.epochs.push_back(checkpoint.progress.record.epochs.back());
    checkpoint.progress.record.epochs.back().epoch = epoch;
    update(metadata, checkpoint.progress.record, checkpoint.progress.position);
    write_checkpoint(directory / "c", network, checkpoint.state, metadata, Survives::kKill);
    EXPECT_EQ(text_of(read_checkpoint(directory / "c", network).progress.record),
              text_of(checkpoint.progress.record));
  }
}

// Makes the lines of epochs count from 0, as earlier versions wrote them.
void count_from_zero(CheckpointMetadata& metadata) {
  std::string& text = metadata.epochs.escaped;
  for (int epoch = 1; epoch <= metadata.last_epoch; ++epoch) {
    const std::string key = "{\\\"epoch\\\":", now = key + std::to_string(epoch) + ",";
    text.replace(text.find(now), now.size(), key + std::to_string(epoch - 1) + ",");
  }
  metadata.epochs.crc = tbwriter::crc32c(nlohmann::json::parse('"' + text + '"').get<std::string>());
  --metadata.last_epoch;
}

TEST(Checkpoint, OfAnEarlierVersionCountsEpochsFromOneAndKeepsTheStepsOfItsEvents) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  Checkpoint checkpoint = some_checkpoint(network);
  std::vector<EpochRecord>& epochs = checkpoint.progress.record.epochs;
  epochs.push_back(epochs.back());
  for (std::size_t i = 0; i < 2; ++i) epochs[i].epoch = static_cast<int>(i) + 1;
  CheckpointMetadata metadata;
  update(metadata, checkpoint.progress.record, checkpoint.progress.position);
  count_from_zero(metadata);
  write_checkpoint(directory / "old", network, checkpoint.state, metadata, Survives::kKill);
  EXPECT_EQ(last_epoch_of(read_safetensors(directory / "old")), 2);
  Checkpoint read = read_checkpoint(directory / "old", network);
  write(directory / "new", network, read);
  EXPECT_EQ(last_epoch_of(read_safetensors(directory / "new")), 2);
  for (const Checkpoint& now : {read, read_checkpoint(directory / "new", network)}) {
    EXPECT_EQ(now.progress.record.epochs.at(0).epoch, 1);
    EXPECT_EQ(now.progress.record.epochs.at(1).epoch, 2);
    EXPECT_EQ(now.progress.position.first_step, 0);
  }
  EXPECT_EQ(some_checkpoint(network).progress.position.first_step, 1);
}

TEST(Checkpoint, KeepsTheEpochBeforeTrainingApart) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  Checkpoint checkpoint = some_checkpoint(network);
  checkpoint.progress.record.untrained = EpochRecord{0, {{"validation_loss", 2.5}}};
  write(directory / "file", network, checkpoint);
  EXPECT_EQ(last_epoch_of(read_safetensors(directory / "file")), 1);
  EXPECT_EQ(whole_checkpoint_epoch(directory / "file"), 1);
  const RunProgress read = read_checkpoint(directory / "file", network).progress;
  EXPECT_EQ(read.record.untrained.value()["validation_loss"], 2.5);
  EXPECT_EQ(read.record.epochs.size(), 1u);
  EXPECT_EQ(read.position.first_step, 1);
  EXPECT_EQ(whole_checkpoint_epoch(directory / "none"), std::nullopt);
  std::string damaged = tbwriter::slurp(directory / "file");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  tbwriter::spill(directory / "file", damaged);
  EXPECT_EQ(whole_checkpoint_epoch(directory / "file"), std::nullopt);
}

TEST(Checkpoint, IsRefusedWhenCutAnywhereOrWithAFlippedBit) {
  const TemporaryDirectory directory;
  const Network network(spec(true), {1, 4, 4});
  write(directory / "good", network, some_checkpoint(network));
  const std::string good = tbwriter::slurp(directory / "good");
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i % 3 == 0) {
      tbwriter::spill(directory / "bad", good.substr(0, i));
      EXPECT_THROW(read_checkpoint(directory / "bad", network), DataError) << "cut at " << i;
    }
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    tbwriter::spill(directory / "bad", flipped);
    EXPECT_THROW(read_checkpoint_record(directory / "bad"), DataError)
        << flipped.substr(i - std::min<std::size_t>(i, 20), 40);
  }
}

TEST(Checkpoint, OfAnEarlierVersionHasItsOwnChecksum) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  write(directory / "c", network, some_checkpoint(network));
  TensorFile file = read_safetensors(directory / "c");
  ASSERT_EQ(file.metadata.erase("header_crc32c"), 1u);
  file.metadata["kernels"] = "own";
  std::string checksums;
  for (const char* key : {"progress", "epochs", "config", "provenance", "kernels"})
    checksums += std::to_string(tbwriter::crc32c(file.metadata.at(key))) + " ";
  file.metadata["progress_crc32c"] = std::to_string(tbwriter::crc32c(checksums));
  write_safetensors(directory / "earlier", file, Survives::kKill);
  EXPECT_EQ(read_checkpoint(directory / "earlier", network).state.step_count, 12345678901);
  EXPECT_EQ(read_checkpoint_record(directory / "earlier").kernels, "builtin");
  file.metadata["kernels"] = "library";
  write_safetensors(directory / "damaged", file, Survives::kKill);
  EXPECT_THROW(read_checkpoint(directory / "damaged", network), DataError);
  file.metadata.erase("progress_crc32c");
  write_safetensors(directory / "without", file, Survives::kKill);
  EXPECT_THROW(read_checkpoint_record(directory / "without"), DataError);
}

TEST(Checkpoint, OfWeightsAloneIsNothingToGoOnFrom) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4}), other(spec(true), {1, 4, 4});
  write(directory / "c", network, some_checkpoint(network));
  EXPECT_THAT(test::message_of<DataError>([&] { read_checkpoint(directory / "c", other); }),
              HasSubstr("missing: norm.weight [2]"));
}

TEST(Checkpoint, HasExactlyTheTensorsOfItsNetwork) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  Checkpoint checkpoint = some_checkpoint(network);
  write(directory / "c", network, checkpoint);
  // As many values in another shape, and the optimizer's arrays of another network.
  const Network other(
      {"net",
       {{"conv", "conv2d", {{"out_channels", std::int64_t{1}}, {"kernel_size", std::int64_t{1}}}},
        {"flatten", "flatten"},
        {"more", "linear", {{"out_features", std::int64_t{3}}}}}},
      {1, 4, 4});
  const std::string message = test::message_of<DataError>([&] { read_checkpoint(directory / "c", other); });
  for (const char* part :
       {"wrong shape: conv.weight is [2, 1, 1, 1], the network's is [1, 1, 1, 1]",
        "missing: more.weight [3, 16]", "unexpected: out.weight [3, 32]",
        "missing: optimizer/exp_avg/more.weight [3, 16]", "unexpected: optimizer/exp_avg_sq/out.bias [3]"})
    EXPECT_THAT(message, HasSubstr(part));
}

TEST(LoadWeights, RefusesACheckpointWithAFlippedBit) {
  const TemporaryDirectory directory;
  const Network network(spec(false), {1, 4, 4});
  write(directory / "c", network, some_checkpoint(network));
  std::string damaged = tbwriter::slurp(directory / "c");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  tbwriter::spill(directory / "c", damaged);
  EXPECT_THAT(test::message_of<DataError>([&] { load_weights(directory / "c", network); }),
              HasSubstr("c: is damaged: its checksum is not that of its content"));
}

// tests/data/make_references.py wrote the file: a state_dict with running statistics and counts of batches.
TEST(LoadWeights, TakesPyTorchsStateDictWithItsBuffers) {
  const std::filesystem::path path = SWEEP_TEST_DATA "/pretrained.safetensors";
  const TensorFile file = read_safetensors(path);
  ASSERT_NE(TensorIndex(file).find("bn.num_batches_tracked"), nullptr);
  Problems problems;
  const Network network(
      network_of(complete_network(parse_json(file.metadata.at("network"), "network"), problems)), {1, 6, 6});
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

}  // namespace sweep::checkpoint_test
