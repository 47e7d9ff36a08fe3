// Training loops of people's own. That of the README, with our networks: tests/install/consumer.

#include <fmt/format.h>

#include "runmanager/records/run_record_json.h"
#include "runmanager/training/run_manager.h"
#include "tests/support/run_world.h"

namespace sweep::own_loop_test {

using OwnTrainingLoop = test::InDirectory;

// A loop that has nothing of this project but RunManager: gradient descent on (weight - 3)², which it can
// stop and go on with.
class ForeignLoop {
 public:
  explicit ForeignLoop(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Trains until after `epochs`, from the checkpoint if there is one. Returns whether the run was complete
  // before.
  bool train(int epochs, bool ends) {
    RunManager manager({.directory = directory_, .clock = [this] { return seconds_ += 1; }});
    const Run run = RunBuilder::get_runs({{"lr", {0.25}}}).at(0);
    if (manager.keep_completed(run)) {
      manager.save("results");
      return true;
    }
    if (progress_.empty()) {
      manager.begin_run(run);
    } else {
      manager.resume_run(run, progress_);
    }
    for (int epoch = epoch_; epoch < epochs; ++epoch) {
      manager.begin_epoch();
      manager.track_loss((weight_ - 3) * (weight_ - 3), 10);
      weight_ -= run.get<double>("lr") * 2 * (weight_ - 3);
      manager.track_epoch_metric("distance", std::abs(weight_ - 3));
      const float values[] = {static_cast<float>(weight_)};
      manager.track_histogram("weight", values);
      const std::vector<std::uint8_t> pixels(3 * 2 * 2, 100);
      manager.track_image("picture", pixels, {3, 2, 2});
      manager.end_epoch();
      if (epoch == epoch_) {  // a checkpoint after the first epoch of each start
        checkpoint_ = {manager.progress(), weight_, epoch + 1};
      }
    }
    if (ends) {
      manager.end_run();
      manager.save("results");
    } else {
      std::tie(progress_, weight_, epoch_) = checkpoint_;  // as a process that is killed, and starts again
    }
    return false;
  }

 private:
  std::filesystem::path directory_;
  double seconds_ = 0, weight_ = 0;
  int epoch_ = 0;
  std::string progress_;
  std::tuple<std::string, double, int> checkpoint_;
};

TEST_F(OwnTrainingLoop, NeedsNothingElseOfThisProject) {
  ForeignLoop loop(directory.path() / "mine");
  EXPECT_FALSE(loop.train(3, true));
  const RunRecord record = read_run_record(directory.path() / "mine/lr=0.25/run.json");
  ASSERT_EQ(record.epochs.size(), 3u);
  EXPECT_EQ(record.epochs[1]["loss"], 2.25);
  EXPECT_EQ(record.epochs[1]["distance"], 0.75);
  EXPECT_EQ(record.epochs[1]["accuracy"], std::nullopt) << "nothing was counted";
  const auto rows = parse_csv(read_file(directory.path() / "mine/results.csv"));
  EXPECT_THAT(rows.at(0), Contains("distance"));
  const auto events = tbwriter::read_run(directory.path() / "mine/lr=0.25");
  EXPECT_EQ(tbwriter::values_of(events, "weight").size(), 3u);
  EXPECT_EQ(tbwriter::values_of(events, "picture").size(), 3u);
  EXPECT_EQ(tbwriter::values_of(events, "distance").size(), 3u);
}

TEST_F(OwnTrainingLoop, GoesOnFromItsOwnCheckpoint) {
  ForeignLoop whole(directory.path() / "whole"), stopped(directory.path() / "stopped");
  whole.train(4, true);
  stopped.train(3, false);  // epochs 2 and 3 are after its checkpoint
  stopped.train(4, true);
  const RunRecord one = read_run_record(directory.path() / "whole/lr=0.25/run.json"),
                  other = read_run_record(directory.path() / "stopped/lr=0.25/run.json");
  ASSERT_EQ(other.epochs.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(one.epochs[i]["loss"], other.epochs[i]["loss"]) << i;
  const auto events = tbwriter::read_run(directory.path() / "stopped/lr=0.25");
  EXPECT_EQ(tbwriter::values_of(events, "distance").size(), 4u) << "each epoch once";
  EXPECT_TRUE(stopped.train(4, true)) << "completed runs are kept";
  ForeignLoop removed(directory.path() / "removed");
  removed.train(3, false);
  std::filesystem::remove_all(directory.path() / "removed");
  removed.train(4, true);
  EXPECT_EQ(tbwriter::values_of(tbwriter::read_run(directory.path() / "removed/lr=0.25"), "distance").size(),
            4u);
  EXPECT_EQ(parse_csv(read_file(directory.path() / "stopped/results.csv")).size(), 1u + 4);
}

TEST_F(OwnTrainingLoop, BeginsItsEventsAnewIfTheyAreGoneBeforeItsFirstEpoch) {
  RunManager manager({.directory = directory.path()});
  const sweep::Run run = RunBuilder::get_runs({{"lr", {0.25}}}).at(0);
  manager.begin_run(run);
  const std::string progress = manager.progress();
  manager.end_run(RunStatus::kInterrupted);
  std::filesystem::remove_all(directory.path() / run.name);
  const std::filesystem::path other = directory.path() / run.name / "a.tfevents";
  std::filesystem::create_directory(other.parent_path());
  write_file_atomically(other, "");
  manager.resume_run(run, progress);
  manager.end_run();
  EXPECT_THAT(tbwriter::tags_of(tbwriter::read_run(directory.path() / run.name)),
              Contains("_hparams_/session_start_info"));
  EXPECT_TRUE(std::filesystem::exists(other)) << "another program's";
}

TEST_F(OwnTrainingLoop, MeansAMetricOfNetworksByItsTagAlso) {
  RunManager manager({.directory = directory.path()});
  sweep::Run run = RunBuilder::get_runs({{"lr", {0.25}}}).at(0);
  run.params.emplace_back("note", "not UTF-8: \xff");
  manager.begin_run(run);
  manager.begin_epoch();
  manager.track_epoch_metric("Loss/train", 3);
  manager.end_epoch();
  EXPECT_THAT(manager.progress(), HasSubstr("not UTF-8: \xef\xbf\xbd"));
  manager.end_run();
  EXPECT_EQ(read_run_record(directory.path() / run.name / "run.json").epochs[0]["loss"], 3);
  EXPECT_EQ(tbwriter::values_of(tbwriter::read_run(directory.path() / run.name), "Loss/train").size(), 1u);
}

TEST_F(OwnTrainingLoop, TrainsARunAgainThatFailedOrIsAnother) {
  RunManager manager({.directory = directory.path()});
  const sweep::Run run = RunBuilder::get_runs({{"lr", {0.25}}}).at(0);
  manager.begin_run(run);
  manager.end_run(RunStatus::kFailed, "diverged");
  EXPECT_FALSE(manager.keep_completed(run));
  manager.begin_run(run);
  manager.end_run();
  EXPECT_TRUE(manager.keep_completed(run));
  sweep::Run other = run;
  other.params = RunBuilder::get_runs({{"lr", {0.5}}}).at(0).params;
  EXPECT_FALSE(manager.keep_completed(other)) << "of the same name, with another learning rate";
}

TEST_F(OwnTrainingLoop, IsToldWhatItsRunLacks) {
  RunManager manager({.directory = directory.path() / "mine"});
  const sweep::Run run = RunBuilder::get_runs({{"lr", {0.25}}}).at(0);
  EXPECT_THAT([&] { manager.resume_run(run, "{\"record\": 1}"); },
              ThrowsMessage<DataError>(HasSubstr("the progress of lr=0.25")));
  sweep::Run twice = run;
  twice.params.push_back(run.params[0]);
  EXPECT_THAT([&] { manager.begin_run(twice); }, ThrowsMessage<ConfigError>(HasSubstr("lr is given twice")));
  manager.begin_run(run);
  const std::string progress = manager.progress();
  manager.begin_epoch();
  EXPECT_THAT([&] { manager.progress(); }, ThrowsMessage<std::logic_error>(HasSubstr("progress() inside")));
  for (const char* name : {"", "epoch", "status"})
    EXPECT_THROW(manager.track_epoch_metric(name, 0.5), ConfigError) << name;
  EXPECT_THROW(manager.track_loss(1, -5), ConfigError);
  EXPECT_THROW(manager.track_num_correct(-3), ConfigError);
  const std::vector<float> values(3);
  EXPECT_THAT([&] { manager.track_parameters(values, {}); },
              ThrowsMessage<std::logic_error>(HasSubstr("without a network")));
  EXPECT_THROW(manager.track_histogram("Loss/test", values), ConfigError) << "a scalar at the run's end";
  manager.track_histogram("Loss/batch", values);
  EXPECT_THROW(manager.track_batch({.loss = 1, .samples = 1}, 0), ConfigError) << "of another kind";
  const std::vector<std::uint8_t> pixels(8);
  EXPECT_THAT(
      [&] {
        manager.track_image("picture", pixels, {2, 2, 2});
      },
      ThrowsMessage<ShapeError>(HasSubstr("1 or 3 channels")));
  manager.end_run();
  twice.params[0].second = 0.5;
  EXPECT_THAT([&] { manager.resume_run(twice, progress); },
              ThrowsMessage<DataError>("the progress of lr=0.25 is that of other parameters, {\"lr\":0.25}"));
}

// What the manager says of an engine on `engine_device` in a run that is to be on `run_device`; "" if it
// takes it.
std::string complaint(const std::string& run_device, const std::string& engine_device,
                      const std::function<void(RunManager&, Engine&)>& track) {
  TemporaryDirectory directory;
  const Dataset data = small_dataset();
  const Network network(small_network(), data.shape);
  DataLoader loader(data.train, {.batch_size = 10});
  FakeTraining training;
  training.options.device = parse_device(engine_device);
  FakeEngine engine(network, training);
  RunManager manager({.directory = directory.path() / "mine"});
  manager.begin_run(RunBuilder::get_runs({{"device", {run_device}}}).at(0), network, loader);
  manager.begin_epoch();
  try {
    track(manager, engine);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST_F(OwnTrainingLoop, ThatMixesDevicesIsToldBoth) {
  const std::vector<std::function<void(RunManager&, Engine&)>> ways = {
      [](RunManager& manager, Engine& engine) { manager.track(engine); },
      [](RunManager& manager, Engine& engine) { manager.track_parameters(engine); }};
  for (const auto& track : ways) {
    EXPECT_EQ(complaint("cpu", "cpu", track), "");
    EXPECT_EQ(complaint("cuda:0", "cuda", track), "");
    EXPECT_EQ(complaint("the one in the cellar", "cuda", track), "") << "no name of ours says nothing";
    for (const auto& [run, engine] : {std::pair("cuda:0", "cpu"), {"cuda:1", "cuda:0"}, {"cpu", "cuda:2"}})
      EXPECT_THAT(complaint(run, engine, track),
                  HasSubstr(fmt::format("expected device {} but got device {}", run, engine)));
  }
}

}  // namespace sweep::own_loop_test
