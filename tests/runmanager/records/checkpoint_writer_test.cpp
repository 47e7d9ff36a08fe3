#include "runmanager/records/checkpoint_writer.h"

#include <future>

#include "runmanager/records/run_files.h"
#include "runmanager/sweepfile/config_reader.h"
#include "tests/support/run_world.h"

namespace sweep::checkpoint_writer_test {

class CheckpointWriterTest : public ::testing::Test {
 protected:
  static TrainingState state(float value) {
    TrainingState state;
    state.weights.parameters.assign(kNetwork.parameter_count(), value);
    state.step_count = 3;
    return state;
  }

  // Adds an epoch to the run and starts its checkpoint, whose weights are all the epoch's number.
  void start(CheckpointWriter& writer, bool is_only = false, bool is_best = false) {
    EpochRecord epoch;
    epoch.set("loss", 1);
    epoch.epoch = static_cast<int>(record_.epochs.size()) + 1;
    record_.epochs.push_back(epoch);
    writer.start(state(static_cast<float>(epoch.epoch)), record_, {"events", 100, epoch.epoch}, is_best,
                 is_only);
  }

  Checkpoint read() const { return read_checkpoint(path_, kNetwork); }

  inline static const Network kNetwork{small_network(), {1, 4, 4}};
  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "checkpoint";
  RunRecord record_ = [] {
    RunRecord record;
    record.name = "run";
    record.config = {{"seed", 3}};
    record.provenance = {{"numerics", 1}};
    return record;
  }();
};

TEST_F(CheckpointWriterTest, WritesOneAfterTheOtherWithAllEpochs) {
  int flushed = 0;
  CheckpointWriter writer(path_, kNetwork, [&](Survives) { ++flushed; });
  for (int epoch = 1; epoch < 5; ++epoch) {
    start(writer);
    writer.finish();
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
  const auto best = [this] {
    return read_checkpoint(directory_ / kBestFile, kNetwork).progress.record.epochs.size();
  };
  for (const bool is_best : {true, false, true, false}) {
    start(writer, false, is_best);
    writer.finish();
    EXPECT_EQ(asked.back() == Survives::kPowerCut, is_best);
    EXPECT_EQ(best(), asked.size() < 3 ? 1u : 3u);
    EXPECT_EQ(read().progress.record.epochs.size(), asked.size());
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
  EXPECT_EQ(read().progress.record.epochs.size(), 1u);
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
    start(writer, is_only);
    writer.finish();
    fails = true;
    start(writer, is_only);
    EXPECT_THAT(test::message_of<IoError>([&] { writer.finish(); }), HasSubstr("the disk is full"));
    EXPECT_EQ(read().progress.record.epochs.size(), 1u);
    EXPECT_NO_THROW(writer.finish());
    fails = false;
    start(writer, is_only);
    writer.finish();
    EXPECT_EQ(read().progress.record.epochs.size(), 3u);
  }
}

TEST_F(CheckpointWriterTest, KeepsTheLastSyncedOneUntilTheNextIs) {
  const std::filesystem::path previous = directory_ / kPreviousCheckpointFile;
  std::vector<Survives> flushed;
  const auto flush = [&](Survives survives) { flushed.push_back(survives); };
  const auto epochs_in = [](const std::filesystem::path& path) {
    return read_checkpoint(path, kNetwork).progress.record.epochs.size();
  };
  {
    CheckpointWriter rarely(path_, kNetwork, flush, 1000);
    for (int epoch = 0; epoch < 3; ++epoch) {
      start(rarely);
      rarely.finish();
      EXPECT_FALSE(std::filesystem::exists(previous)) << "no short run pays for a sync";
    }
  }
  EXPECT_THAT(flushed, Each(Survives::kKill));
  {
    CheckpointWriter resumed(path_, kNetwork, flush, 1000);
    resumed.keep_existing();
    start(resumed);
    resumed.finish();
    start(resumed);
    resumed.finish();
  }
  EXPECT_EQ(epochs_in(previous), 3u) << "it is all that a resumed run has on the disk";
  EXPECT_EQ(epochs_in(path_), 5u);
  EXPECT_THAT(flushed, Each(Survives::kKill));
  CheckpointWriter often(path_, kNetwork, flush, 0);
  start(often);
  often.finish();
  EXPECT_EQ(flushed.back(), Survives::kPowerCut) << "the events are synced before their checkpoint";
  EXPECT_TRUE(std::filesystem::equivalent(path_, previous));
  EXPECT_EQ(epochs_in(previous), 6u);
}

TEST_F(CheckpointWriterTest, SyncsBeforeTheNextOneWouldBeTooLate) {
  std::vector<Survives> flushed;
  CheckpointWriter writer(
      path_, kNetwork, [&](Survives survives) { flushed.push_back(survives); }, 0.1);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  start(writer);
  writer.finish();
  // The second would come at 0.12 s or later.
  EXPECT_THAT(flushed, ElementsAre(Survives::kPowerCut));
}

TEST_F(CheckpointWriterTest, IsWaitedForByItsEnd) {
  {
    CheckpointWriter writer(path_, kNetwork,
                            [](Survives) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    start(writer);
  }
  EXPECT_EQ(read().progress.record.epochs.size(), 1u);
}

}  // namespace sweep::checkpoint_writer_test
