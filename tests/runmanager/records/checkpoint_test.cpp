#include "runmanager/records/checkpoint.h"

#include <future>

#include "core/data/safetensors.h"
#include "runmanager/records/checkpoint_writer.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tbwriter/record.h"
#include "tests/support/run_world.h"
#include "tests/support/test_networks.h"

namespace sweep::checkpoint_test {

NetworkSpec spec(bool batch_norm) {
  NetworkSpec network{"net", {test::conv("conv", 2, 1), test::flatten("flatten"), test::linear("out", 3)}};
  if (batch_norm) network.layers.insert(network.layers.begin() + 1, test::norm("norm"));
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
  checkpoint.progress.record.epochs = {{1,
                                        {{"loss", 1.0 / 3},
                                         {"validation_loss", INFINITY},
                                         {"validation_accuracy", 0.1},
                                         {"epoch_seconds", 0.30000000000000004}}}};
  checkpoint.progress.position = {"events.out.tfevents.1.host.2.0", 1ull << 40, 77};
  return checkpoint;
}

class CheckpointFile : public ::testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const Network network_{spec(false), {1, 4, 4}};
};
using LoadWeights = CheckpointFile;

TEST_F(CheckpointFile, IsReadBackToTheSameBits) {
  for (const bool batch_norm : {false, true}) {
    const Network network(spec(batch_norm), {1, 4, 4});
    EXPECT_EQ(network.buffer_count() > 0, batch_norm);
    const Checkpoint written = some_checkpoint(network);
    write(directory_ / "c", network, written);
    const Checkpoint read = read_checkpoint(directory_ / "c", network);
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
    EXPECT_EQ(load_weights(directory_ / "c", network).buffers, written.state.weights.buffers);
  }
}

TEST_F(CheckpointFile, OfTooManyEpochsIsRefusedWithTheirNumber) {
  const Checkpoint checkpoint = some_checkpoint(network_);
  CheckpointMetadata metadata;
  update(metadata, checkpoint.progress.record, checkpoint.progress.position);
  metadata.epochs.escaped.resize(100'000'000, 'x');
  EXPECT_THAT(test::message_of<DataError>([&] {
                write_checkpoint(directory_ / "c", network_, checkpoint.state, metadata, Survives::kKill);
              }),
              HasSubstr("are allowed; it has all epochs of the run, of which at most 0 have room"));
}

TEST_F(CheckpointFile, KeepsTheEpochBeforeTrainingApart) {
  Checkpoint checkpoint = some_checkpoint(network_);
  checkpoint.progress.record.untrained = EpochRecord{0, {{"validation_loss", 2.5}}};
  write(directory_ / "file", network_, checkpoint);
  EXPECT_EQ(last_epoch_of(read_safetensors(directory_ / "file")), 1);
  EXPECT_EQ(whole_checkpoint_epoch(directory_ / "file"), 1);
  const RunProgress read = read_checkpoint(directory_ / "file", network_).progress;
  EXPECT_EQ(read.record.untrained.value()["validation_loss"], 2.5);
  EXPECT_EQ(read.record.epochs.size(), 1u);
  EXPECT_EQ(whole_checkpoint_epoch(directory_ / "none"), std::nullopt);
  const std::string whole = read_file(directory_ / "file");
  tbwriter::spill(directory_ / "file", flipped(whole, whole.size() - 1));
  EXPECT_EQ(whole_checkpoint_epoch(directory_ / "file"), std::nullopt);
  EXPECT_THAT(message_of<DataError>([&] { load_weights(directory_ / "file", network_); }),
              HasSubstr("file: is damaged: its checksum is not that of its content"));
}

TEST_F(CheckpointFile, IsRefusedWhenCutAnywhereOrWithAFlippedBit) {
  const Network network(spec(true), {1, 4, 4});
  write(directory_ / "good", network, some_checkpoint(network));
  const std::string good = read_file(directory_ / "good");
  for (std::size_t i = 0; i < good.size(); ++i) {
    if (i % 3 == 0) {
      tbwriter::spill(directory_ / "bad", good.substr(0, i));
      EXPECT_THROW(read_checkpoint(directory_ / "bad", network), DataError) << "cut at " << i;
    }
    tbwriter::spill(directory_ / "bad", flipped(good, i, 1 << i % 8));
    EXPECT_THROW(read_checkpoint_record(directory_ / "bad"), DataError)
        << "at " << i << " after " << good.substr(i - std::min<std::size_t>(i, 20), 20);
  }
}

// Those of the last version that kept them outside the record.
TEST_F(CheckpointFile, OfAnEarlierVersionHasItsKernelsApart) {
  write(directory_ / "c", network_, some_checkpoint(network_));
  TensorFile file = read_safetensors(directory_ / "c");
  file.metadata["kernels"] = "own";
  write_safetensors(directory_ / "damaged", file, Survives::kKill);
  EXPECT_THROW(read_checkpoint(directory_ / "damaged", network_), DataError);
  std::string tensors, checksums;
  const auto add = [&](std::string_view text) { checksums += std::to_string(tbwriter::crc32c(text)) + " "; };
  for (const NamedTensor& tensor : file.tensors)
    tensors += tensor.name + " " + to_string(tensor.shape) + "\n";
  for (const char* key : {"epochs", "config", "provenance"}) add(file.metadata.at(key));
  add(tensors);
  for (const char* key : {"format", "epoch", "step_count", "progress", "kernels"}) add(file.metadata.at(key));
  file.metadata["header_crc32c"] = std::to_string(tbwriter::crc32c(checksums));
  write_safetensors(directory_ / "earlier", file, Survives::kKill);
  EXPECT_EQ(read_checkpoint_record(directory_ / "earlier").kernels, "builtin");
  file.metadata.erase("header_crc32c");
  write_safetensors(directory_ / "without", file, Survives::kKill);
  EXPECT_THROW(read_checkpoint_record(directory_ / "without"), DataError);
}

TEST_F(CheckpointFile, HasExactlyTheTensorsOfItsNetwork) {
  Checkpoint checkpoint = some_checkpoint(network_);
  write(directory_ / "c", network_, checkpoint);
  // As many values in another shape, and the optimizer's arrays of another network_.
  const Network other({"net", {test::conv("conv", 1, 1), test::flatten("flatten"), test::linear("more", 3)}},
                      {1, 4, 4});
  const std::string message = test::message_of<DataError>([&] { read_checkpoint(directory_ / "c", other); });
  for (const char* part :
       {"wrong shape: conv.weight is [2, 1, 1, 1], the network's is [1, 1, 1, 1]",
        "missing: more.weight [3, 16]", "unexpected: out.weight [3, 32]",
        "missing: optimizer/exp_avg/more.weight [3, 16]", "unexpected: optimizer/exp_avg_sq/out.bias [3]"})
    EXPECT_THAT(message, HasSubstr(part));
}

// tests/data/make_references.py wrote the file: a state_dict with running statistics and counts of batches.
TEST_F(LoadWeights, TakesPyTorchsStateDictWithItsBuffers) {
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

class CheckpointWriterTest : public ::testing::Test {
 protected:
  CheckpointWriterTest() {
    record_.name = "run";
    record_.config = {{"seed", 3}};
  }

  static TrainingState state(float value) {
    TrainingState state;
    state.weights.parameters.assign(kNetwork.parameter_count(), value);
    state.step_count = 3;
    return state;
  }

  // Adds an epoch to the run and starts its checkpoint, whose weights are all the epoch's number.
  void start(CheckpointWriter& writer, bool is_only = false, bool is_best = false) {
    const int epoch = static_cast<int>(record_.epochs.size()) + 1;
    record_.epochs.push_back({epoch, {{"loss", 1}}});
    writer.start(state(static_cast<float>(epoch)), record_, {"events", 100, epoch}, is_best, is_only);
  }

  // The same, until it is written.
  void write(CheckpointWriter& writer, bool is_only = false, bool is_best = false) {
    start(writer, is_only, is_best);
    writer.finish();
  }

  Checkpoint read() const { return read_checkpoint(path_, kNetwork); }
  static std::size_t epochs_in(const std::filesystem::path& path) {
    return read_checkpoint(path, kNetwork).progress.record.epochs.size();
  }

  inline static const Network kNetwork{small_network(), {1, 4, 4}};
  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "checkpoint";
  RunRecord record_;
};

TEST_F(CheckpointWriterTest, WritesOneAfterTheOtherWithAllEpochs) {
  int flushed = 0;
  CheckpointWriter writer(path_, kNetwork, [&](Survives) { ++flushed; });
  for (int epoch = 1; epoch < 5; ++epoch) {
    write(writer);
    EXPECT_EQ(flushed, epoch);
    const Checkpoint read = this->read();
    EXPECT_EQ(read.state.weights.parameters, state(static_cast<float>(epoch)).weights.parameters);
    EXPECT_EQ(read.progress.record.epochs.size(), static_cast<std::size_t>(epoch));
    EXPECT_EQ(read.progress.position, (RunPosition{"events", 100, epoch}));
  }
}

TEST_F(CheckpointWriterTest, KeepsTheBestUnderItsNameAndSyncsIt) {
  std::vector<Survives> asked;
  CheckpointWriter writer(
      path_, kNetwork, [&](Survives survives) { asked.push_back(survives); }, 1e6);
  for (const bool is_best : {true, false, true, false}) {
    write(writer, false, is_best);
    EXPECT_EQ(asked.back() == Survives::kPowerCut, is_best);
    EXPECT_EQ(epochs_in(directory_ / kBestFile), asked.size() < 3 ? 1u : 3u);
    EXPECT_EQ(epochs_in(path_), asked.size());
  }
}

TEST_F(CheckpointWriterTest, LetsItsCallerGoOnAndKeepsWhatWasWhenItStarted) {
  std::promise<void> may_flush;
  CheckpointWriter writer(path_, kNetwork, [&](Survives) { may_flush.get_future().wait(); });
  start(writer);
  EXPECT_FALSE(writer.is_ready());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "a checkpoint is of no use before its events are written";
  record_.epochs.clear();
  record_.name = "another";
  may_flush.set_value();
  writer.finish();
  EXPECT_TRUE(writer.is_ready());
  EXPECT_EQ(read().progress.record.name, "run");
  EXPECT_EQ(epochs_in(path_), 1u);
}

TEST_F(CheckpointWriterTest, WritesAnOnlyOneAtOnce) {
  const auto caller = std::this_thread::get_id();
  CheckpointWriter writer(path_, kNetwork, [&](Survives) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  start(writer, /*is_only=*/true);
  EXPECT_TRUE(writer.is_ready());
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_NO_THROW(writer.finish());
}

TEST_F(CheckpointWriterTest, TellsOfAFailureOnceAndKeepsTheLastGoodOne) {
  for (const bool is_only : {false, true}) {
    record_.epochs.clear();
    bool fails = false;
    CheckpointWriter writer(path_, kNetwork, [&](Survives) {
      if (fails) throw IoError("the disk is full");
    });
    write(writer, is_only);
    fails = true;
    start(writer, is_only);
    EXPECT_THAT(test::message_of<IoError>([&] { writer.finish(); }), HasSubstr("the disk is full"));
    EXPECT_EQ(epochs_in(path_), 1u);
    EXPECT_NO_THROW(writer.finish());
    fails = false;
    write(writer, is_only);
    EXPECT_EQ(epochs_in(path_), 3u);
  }
}

TEST_F(CheckpointWriterTest, KeepsTheLastSyncedOneUntilTheNextIs) {
  const std::filesystem::path previous = directory_ / kPreviousCheckpointFile;
  std::vector<Survives> flushed;
  const auto flush = [&](Survives survives) { flushed.push_back(survives); };
  {
    CheckpointWriter rarely(path_, kNetwork, flush, 1000);
    for (int epoch = 0; epoch < 3; ++epoch) {
      write(rarely);
      EXPECT_FALSE(std::filesystem::exists(previous)) << "no short run pays for a sync";
    }
  }
  EXPECT_THAT(flushed, Each(Survives::kKill));
  {
    CheckpointWriter resumed(path_, kNetwork, flush, 1000);
    resumed.keep_existing();
    write(resumed);
    write(resumed);
  }
  EXPECT_EQ(epochs_in(previous), 3u) << "it is all that a resumed run has on the disk";
  EXPECT_EQ(epochs_in(path_), 5u);
  EXPECT_THAT(flushed, Each(Survives::kKill));
  CheckpointWriter often(path_, kNetwork, flush, 0);
  write(often);
  EXPECT_EQ(flushed.back(), Survives::kPowerCut) << "the events are synced before their checkpoint";
  EXPECT_TRUE(std::filesystem::equivalent(path_, previous));
  EXPECT_EQ(epochs_in(previous), 6u);
}

TEST_F(CheckpointWriterTest, SyncsBeforeTheNextOneWouldBeTooLate) {
  std::vector<Survives> flushed;
  CheckpointWriter writer(
      path_, kNetwork, [&](Survives survives) { flushed.push_back(survives); }, 0.1);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  write(writer);
  // The second would come at 0.12 s or later.
  EXPECT_THAT(flushed, ElementsAre(Survives::kPowerCut));
}

TEST_F(CheckpointWriterTest, IsWaitedForByItsEnd) {
  const auto flush = [](Survives) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  start(*std::make_unique<CheckpointWriter>(path_, kNetwork, flush));
  EXPECT_EQ(epochs_in(path_), 1u);
}

}  // namespace sweep::checkpoint_test
