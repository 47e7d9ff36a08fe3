#include "runmanager/training/run_manager.h"

#include "core/base/file.h"
#include "tests/runmanager/training/run_files.h"
#include "tests/support/resource_limit.h"

namespace sweep::run_manager_test {

class RunManagerTest : public test::RunFiles {
 protected:
  // A manager, and its first run.
  RunManager& manager() {
    return manager_.emplace(
        RunManagerOptions{.directory = sweep_directory(), .clock = [this] { return seconds_; }});
  }
  RunManager& begin() {
    manager().begin_run(run_, network_, loader_);
    return *manager_;
  }
  RunManager& begin_epoch() {
    begin().begin_epoch();
    return *manager_;
  }

  std::optional<RunManager> manager_;
};

TEST_F(RunManagerTest, WritesTheScalarsOfTheContractOncePerEpoch) {
  RunManager& manager = begin();
  manager.track_learning_rate(0.5);
  for (int epoch = 0; epoch < 2; ++epoch) {
    manager.begin_epoch();
    track(manager, 2.0, 5, 10);
    track(manager, 1.0, 10, 30);
    seconds_ += 2;
    manager.end_training();
    seconds_ += 5;  // validation is not part of the epoch's time
    manager.track_validation({.loss = 5, .correct = 4, .samples = 10});
    manager.end_epoch();
  }
  manager.end_run();
  const std::map<std::string, double> expected = {
      {"Loss/train", 1.25},          {"Accuracy/train", 0.375},      {"Number Correct/train", 15},
      {"Loss/validation", 0.5},      {"Accuracy/validation", 0.4f},  {"Number Correct/validation", 4},
      {"Duration/epoch_seconds", 2}, {"Time/images_per_second", 20}, {"Time/data_wait_seconds", 0},
      {"Optimizer/lr", 0.5}};
  EXPECT_EQ(last_scalars(events()), expected);
  EXPECT_THAT(tbwriter::steps_of(events(), "Loss/train"), ElementsAre(1, 2));
}

TEST_F(RunManagerTest, MeasuresARunFromItsBeginToItsEnd) {
  RunManager& manager = begin();
  EXPECT_EQ(record().status, RunStatus::kRunning);
  seconds_ += 1;
  manager.begin_epoch();
  seconds_ += 2;
  EXPECT_EQ(manager.end_epoch()["run_seconds"], 3);
  seconds_ += 4;
  manager.end_run();
  EXPECT_EQ(manager.records()[0].run_seconds, 7);
  EXPECT_EQ(record().run_seconds, 7);
}

TEST_F(RunManagerTest, WeighsLossesWithTheBatchSize) {
  RunManager& manager = this->manager();
  DataLoader loader(data_.train, {.batch_size = 30});  // batches of 30 and 10
  manager.begin_run(run_, network_, loader);
  manager.begin_epoch();
  loader.begin_epoch(0);
  manager.track_loss(1.0, *loader.next());
  manager.track_loss(2.0, *loader.next());
  const EpochRecord epoch = manager.end_epoch();
  EXPECT_DOUBLE_EQ(*epoch["loss"], 1.25);
  EXPECT_EQ(epoch["accuracy"], std::nullopt) << "nothing was counted";
  manager.begin_epoch();
  EXPECT_TRUE(std::isnan(*manager.end_epoch()["loss"])) << "of no samples";
}

TEST_F(RunManagerTest, CountsOutputsThatAreLargestAtTheLabel) {
  RunManager& manager = this->manager();
  DataLoader loader(data_.train, {.batch_size = 3});  // labels 0, 1, 2
  manager.begin_run(run_, network_, loader);
  manager.begin_epoch();
  loader.begin_epoch(0);
  const Batch& batch = *loader.next();
  const std::vector<float> outputs = {3, 1, 2, /*tie: the first counts*/ 1, 1, 0, /*right*/ 0, 1, 5};
  manager.track_num_correct(outputs, batch);
  EXPECT_EQ(manager.end_epoch()["number_correct"], 2);
  manager.begin_epoch();
  EXPECT_THROW(manager.track_num_correct(std::vector<float>(7), batch), ShapeError);
  const std::vector<float> logits = {/*right*/ -1, 1, /*wrong*/ 5};
  manager.track_num_correct(logits, batch);
  EXPECT_EQ(manager.end_epoch()["number_correct"], 2) << "of class 1 against class 0";
}

TEST_F(RunManagerTest, StartsTheSessionWithEverySweptKeyAndItsTypeAndEndsItWithSuccess) {
  begin().end_run();
  proto::HParamsPluginData start;
  const auto starts = values_of("_hparams_/session_start_info");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_TRUE(start.ParseFromString(starts[0].metadata().plugin_data().content()));
  const auto& hparams = start.session_start_info().hparams();
  ASSERT_EQ(hparams.size(), 4u);
  EXPECT_EQ(hparams.at("lr").number_value(), 0.5);
  EXPECT_EQ(hparams.at("n").number_value(), 3);
  EXPECT_EQ(hparams.at("shuffle").kind_case(), google::protobuf::Value::kBoolValue);
  EXPECT_EQ(hparams.at("device").string_value(), "cpu");
  EXPECT_EQ(last_status(), proto::STATUS_SUCCESS);
  EXPECT_THAT(values_of("_hparams_/experiment"), IsEmpty());
}

TEST_F(RunManagerTest, EndsAFailedSessionAsFailureAndSaysWhy) {
  begin().end_run(RunStatus::kFailed, "it <diverged>");
  EXPECT_EQ(last_status(), proto::STATUS_FAILURE);
  EXPECT_THAT(values_of("status").at(0).tensor().string_val(0), HasSubstr("it &lt;diverged&gt;"));
  EXPECT_EQ(record().status, RunStatus::kFailed);
  EXPECT_EQ(record().error, "it <diverged>");
}

TEST_F(RunManagerTest, LeavesTheSessionOfAnInterruptedRunOpen) {
  begin();
  manager_.reset();
  EXPECT_THAT(values_of("_hparams_/session_end_info"), IsEmpty());
  EXPECT_EQ(record().status, RunStatus::kInterrupted);
}

TEST_F(RunManagerTest, ShowsTheFirstBatchAsAGridOfEightARow) {
  run_.log.images = 64;
  begin().end_run();
  const auto images = values_of("images");
  ASSERT_EQ(images.size(), 1u);
  // 10 pictures of 4x4 in two rows: 8 * (4 + 2) + 2 by 2 * (4 + 2) + 2 pixels.
  EXPECT_EQ(images[0].image().width(), 50);
  EXPECT_EQ(images[0].image().height(), 14);
}

// Counts by itself, as an engine does whose values are far away.
class CountingEngine final : public FakeEngine {
 public:
  CountingEngine(const Network& network, std::vector<float> values)
      : FakeEngine(network, training_), network_(network), values_(std::move(values)) {}
  std::vector<float> array(const EngineArray&) const override { throw std::logic_error("it was copied"); }

  std::optional<ParameterCounts> parameter_histograms(std::span<const double> limits) const override {
    ParameterCounts counts;
    for (const Parameter& parameter : network_.parameters()) {
      HistogramCounts own{.number = static_cast<std::int64_t>(parameter.count), .min = 1e30, .max = -1e30};
      own.buckets.resize(limits.size() + 1);
      for (std::size_t i = 0; i < parameter.count; ++i) {
        const auto value = static_cast<double>(values_.at(parameter.offset + i));
        own.sum += value;
        own.sum_squares += value * value;
        own.min = std::min(own.min, value);
        own.max = std::max(own.max, value);
        ++own.buckets.at(
            static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), value) - limits.begin()));
      }
      counts.values.push_back(own);
      counts.gradients.push_back(own);
    }
    return counts;
  }

 private:
  inline static FakeTraining training_;
  const Network& network_;
  std::vector<float> values_;
};

TEST_F(RunManagerTest, WritesTheSameHistogramsOfCountsAsOfValues) {
  std::vector<float> values(network_.parameter_count());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (i % 2 == 0 ? 1.0f : -1.0f) * std::pow(2.0f, 4 * static_cast<float>(i) - 80);  // to 1e34
  const CountingEngine engine(network_, values);
  std::vector<std::string> written[2];
  for (const bool counted : {false, true}) {
    RunManager& manager = begin_epoch();
    counted ? manager.track_parameters(engine) : manager.track_parameters(values, values);
    manager.end_epoch();
    manager.end_run();
    for (const char* tag :
         {"weights/out.weight", "weights/out.bias", "gradients/out.weight", "gradients/out.bias"}) {
      ASSERT_THAT(values_of(tag), SizeIs(1)) << tag;
      written[counted].push_back(values_of(tag)[0].histo().SerializeAsString());
    }
    EXPECT_EQ(values_of("weights/out.weight")[0].histo().num(), 3 * 16);
  }
  EXPECT_EQ(written[0], written[1]);
}

TEST_F(RunManagerTest, RefusesCountsOfAnotherNetwork) {
  NetworkSpec spec = small_network();
  spec.layers.back().arguments["bias"] = false;
  const Network other(spec, {1, 4, 4});
  RunManager& manager = begin_epoch();
  EXPECT_THAT(
      [&] { manager.track_parameters(CountingEngine(other, std::vector<float>(100))); },
      ThrowsMessage<ShapeError>("track_parameters: the engine's network has 1 parameters, the run's 2"));
}

TEST_F(RunManagerTest, WritesNothingThatIsSwitchedOff) {
  run_.log = {.images = 0,
              .graph = false,
              .histograms = false,
              .hparams = false,
              .text = false,
              .layout = false,
              .predictions = false};
  RunManager& manager = begin_epoch();
  manager.track_parameters(std::vector<float>(network_.parameter_count()), {});
  manager.end_epoch();
  manager.track_predictions(data_.validation, std::vector<float>(30), data_.class_names, "validation");
  manager.end_run();
  for (const proto::Event& event : events()) EXPECT_TRUE(event.graph_def().empty());
  EXPECT_THAT(tbwriter::tags_of(events()),
              ElementsAre("Accuracy/train", "Duration/epoch_seconds", "Loss/train", "Number Correct/train",
                          "Time/data_wait_seconds", "Time/images_per_second"));
}

TEST_F(RunManagerTest, RefusesPredictionsOfLabelsThatHaveNoOutput) {
  EXPECT_THAT([&] { begin().track_predictions(data_.validation, std::vector<float>(10), {}, "validation"); },
              ThrowsMessage<ShapeError>(HasSubstr("with 1 outputs per sample, want one from 0 to 0")));
}

TEST_F(RunManagerTest, RefusesATagForTwoKindsOfDataAndThenRecordsNoEpoch) {
  RunManager& manager = begin_epoch();
  const std::vector<float> values(3);
  manager.track_histogram("weight", values);
  EXPECT_THROW(manager.track_image("weight", std::vector<std::uint8_t>(1), {1, 1, 1}), ConfigError);
  manager.track_epoch_metric("weight", 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        [&] { manager.end_epoch(); },
        ThrowsMessage<ConfigError>(HasSubstr("\"weight\" is a histogram and cannot become a scalar")));
    EXPECT_TRUE(manager.record().epochs.empty());
  }
  EXPECT_THROW(manager.track_histogram("configuration", values), ConfigError);
  EXPECT_THROW(manager.track_epoch_metric("status", 1), ConfigError) << "with which the run could not end";
  manager.end_run(RunStatus::kFailed, "of tags");
}

TEST_F(RunManagerTest, RecordsAnEpochOnceIfItsHistogramsAreRefused) {
  RunManager& manager = begin_epoch();
  const std::string taken = "weights/" + network_.parameters()[1].name;
  manager.track_image(taken, std::vector<std::uint8_t>(1), {1, 1, 1});
  manager.track_parameters(std::vector<float>(network_.parameter_count()), {});
  EXPECT_THAT([&] { manager.end_epoch(); },
              ThrowsMessage<ConfigError>(HasSubstr(taken + "\" is an image and cannot become a histogram")));
  EXPECT_THROW(manager.end_epoch(), std::logic_error);
  manager.end_run();
  EXPECT_THAT(manager.records()[0].epochs, SizeIs(1));
  EXPECT_THAT(values_of("Loss/train"), SizeIs(1));
}

TEST_F(RunManagerTest, WritesTheSameChartLayoutInEveryRun) {
  RunManager& manager = this->manager();
  std::vector<std::string> layouts;
  for (const sweep::Run& run : RunBuilder::get_runs({{"lr", {1, 2}}})) {
    manager.begin_run(run, network_, loader_);
    manager.end_run();
    run_ = run;
    ASSERT_THAT(values_of("custom_scalars__config__"), SizeIs(1));
    layouts.push_back(values_of("custom_scalars__config__")[0].tensor().SerializeAsString());
  }
  EXPECT_EQ(layouts[0], layouts[1]) << "TensorBoard drops equal charts when it merges layouts";
}

TEST_F(RunManagerTest, RefusesCallsOutOfOrder) {
  RunManager& manager = this->manager();
  EXPECT_THROW(manager.begin_epoch(), std::logic_error);
  EXPECT_THROW(manager.end_run(), std::logic_error);
  EXPECT_THROW(manager.run_directory(), std::logic_error);
  manager.begin_run(run_, network_, loader_);
  EXPECT_THROW(manager.begin_run(run_, network_, loader_), std::logic_error);
  EXPECT_THROW(manager.end_epoch(), std::logic_error);
  EXPECT_THROW(track(manager, 1, 1, 1), std::logic_error);
  EXPECT_THAT([&] { manager.track_histogram("tag", {}); },
              ThrowsMessage<std::logic_error>("RunManager::track_histogram() outside of an epoch"));
  manager.begin_epoch();
  EXPECT_THROW(manager.begin_epoch(), std::logic_error);
}

TEST_F(RunManagerTest, RefusesRunsWithoutADirectoryOfTheirOwnAndKeepsNoRecordOfThem) {
  RunManager& manager = this->manager();
  for (const char* name : {"", ".", "..", "../beside", "/tmp/elsewhere", "a/../..", "a/"}) {
    EXPECT_THROW(manager.begin_run({.name = name}), ConfigError) << name;
    EXPECT_THROW(manager.keep_completed({.name = name}), ConfigError) << name;
  }
  EXPECT_THROW(manager.begin_run({.name = std::string("a\0b", 3)}), ConfigError);
  const DataLoader empty({}, {});
  EXPECT_THROW(manager.begin_run(run_, network_, empty), ConfigError);
  for (const char* name : {"", ".", ".."}) EXPECT_THROW(manager.save(name), ConfigError) << name;
  std::filesystem::create_directories(manager.directory());
  write_file_atomically(manager.directory() / "taken", "a file where the run's directory would be");
  EXPECT_THROW(manager.begin_run({.name = "taken"}), IoError);
  EXPECT_TRUE(manager.records().empty());
}

TEST_F(RunManagerTest, GoesOnOnlyWhereTheSameRunStopped) {
  RunManager& manager = this->manager();
  manager.begin_run({.name = "a", .params = {{"lr", 0.1}}});
  const std::string progress = manager.progress();
  manager.end_run(RunStatus::kInterrupted);
  EXPECT_THAT(
      [&] {
        manager.resume_run({.name = "b", .params = {{"lr", 0.1}}}, progress);
      },
      ThrowsMessage<DataError>("the progress of b is that of another run, a"));
  EXPECT_THROW(manager.resume_run({.name = "a", .params = {{"lr", 0.2}}}, progress), DataError);
  manager.resume_run({.name = "a", .params = {{"lr", 0.1}}}, progress);
}

TEST_F(RunManagerTest, GoesOnWithTheNetworkAndWhatWasSaidOfTheRun) {
  const std::vector<float> values(network_.parameter_count());
  std::string progress;
  for (const bool resumes : {false, true}) {
    RunManager& manager = this->manager();
    if (resumes) {
      manager.resume_run(run_, progress, network_, loader_);
    } else {
      manager.begin_run(run_, network_, loader_);
      manager.track_setup(1, Placement::kHost);
      manager.track_metric("seed", 7);
    }
    manager.begin_epoch();
    manager.track_parameters(values, {});
    manager.end_epoch();
    if (!resumes) progress = manager.progress();
  }
  manager_->end_run();
  EXPECT_EQ(tbwriter::steps_of(events(), "weights/out.weight"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(record().placement, "host");
  EXPECT_EQ(record().metrics.at("seed"), 7);
}

TEST_F(RunManagerTest, TellsARecordThatCannotBeReadNowFromADamagedOne) {
  begin().end_run();
  RunManager& manager = this->manager();
  {
    const test::ResourceLimit no_files(RLIMIT_NOFILE, 0);
    EXPECT_THROW(manager.keep_completed(run_), IoError);
  }
  EXPECT_TRUE(manager.keep_completed(run_));
  const std::filesystem::path file = run_directory() / "run.json";
  tbwriter::spill(file, "{");
  EXPECT_THROW(manager.keep_completed(run_), DataError);
  std::filesystem::remove(file);
  EXPECT_FALSE(manager.keep_completed(run_));
  std::filesystem::create_symlink("run.json", file);
  EXPECT_THAT([&] { manager.keep_completed(run_); }, ThrowsMessage<IoError>(HasSubstr("run.json")));
}

TEST_F(RunManagerTest, CallsASweepByItsDirectoryHoweverThatIsWritten) {
  const std::filesystem::path directory = sweep_directory();
  std::filesystem::create_directories(directory);
  for (const std::filesystem::path& written :
       {directory, directory / "", directory / ".", directory / "a/.."}) {
    RunManager({.directory = written}).save(directory / "results");
    EXPECT_EQ(nlohmann::json::parse(read_file(directory / "results.json"))["sweep"], "sweep") << written;
  }
  EXPECT_NO_THROW(RunManager({.directory = ""}));
}

}  // namespace sweep::run_manager_test
