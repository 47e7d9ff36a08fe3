#include "runmanager/training/run_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "proto/tensorboard/hparams.pb.h"
#include "runmanager/records/run_record_json.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using tbwriter::read_run;
using tbwriter::values_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::ThrowsMessage;

class RunManagerTest : public ::testing::Test {
 protected:
  RunManager manager(double* seconds = nullptr) {
    RunManagerOptions options{.directory = temporary_.path() / "sweep"};
    if (seconds != nullptr) options.clock = [seconds] { return *seconds; };
    return RunManager(std::move(options));
  }

  // One batch of `correct` right samples of the loader's first.
  static void track(RunManager& manager, double loss, std::int64_t correct, std::int64_t samples) {
    manager.track({.loss = loss * static_cast<double>(samples), .correct = correct, .samples = samples});
  }

  std::vector<proto::Event> events() const { return read_run(temporary_.path() / "sweep" / run_.name); }
  RunRecord record() const { return read_run_record(temporary_.path() / "sweep" / run_.name / "run.json"); }

  TemporaryDirectory temporary_;
  Dataset data_ = small_dataset();
  Network network_{small_network(), {1, 4, 4}};
  DataLoader loader_{data_.train, {.batch_size = 10}};
  sweep::Run run_ =
      RunBuilder::get_runs({{"lr", {0.5}}, {"shuffle", {true}}, {"n", {3}}, {"device", {"cpu"}}}).at(0);
};

TEST_F(RunManagerTest, WritesTheScalarsOfTheContractOncePerEpoch) {
  double seconds = 100;
  RunManager manager = this->manager(&seconds);
  manager.begin_run(run_, network_, loader_);
  manager.track_learning_rate(0.5);
  for (int epoch = 0; epoch < 2; ++epoch) {
    manager.begin_epoch();
    track(manager, 2.0, 5, 10);
    track(manager, 1.0, 10, 30);
    seconds += 2;
    manager.end_training();
    seconds += 5;  // validation is not part of the epoch's time
    manager.track_validation({.loss = 5, .correct = 4, .samples = 10});
    manager.end_epoch();
  }
  manager.end_run();

  const auto all = events();
  const std::map<std::string, double> expected = {
      {"Loss/train", 1.25},          {"Accuracy/train", 0.375},      {"Number Correct/train", 15},
      {"Loss/validation", 0.5},      {"Accuracy/validation", 0.4f},  {"Number Correct/validation", 4},
      {"Duration/epoch_seconds", 2}, {"Time/images_per_second", 20}, {"Time/data_wait_seconds", 0},
      {"Optimizer/lr", 0.5}};
  EXPECT_EQ(last_scalars(all), expected);
  std::vector<std::int64_t> steps;
  for (const proto::Event& event : all) {
    for (const auto& value : event.summary().value()) {
      if (value.tag() == "Loss/train") steps.push_back(event.step());
    }
  }
  EXPECT_THAT(steps, ElementsAre(1, 2));
}

TEST_F(RunManagerTest, MeasuresARunFromItsBeginToItsEnd) {
  double seconds = 100;
  RunManager manager = this->manager(&seconds);
  manager.begin_run(run_, network_, loader_);
  seconds += 1;
  manager.begin_epoch();
  seconds += 2;
  EXPECT_EQ(manager.end_epoch()["run_seconds"], 3);
  seconds += 4;
  manager.end_run();
  EXPECT_EQ(manager.records()[0].run_seconds, 7);
  EXPECT_EQ(record().run_seconds, 7);
}

TEST_F(RunManagerTest, WeighsLossesWithTheBatchSize) {
  RunManager manager = this->manager();
  DataLoader loader(data_.train, {.batch_size = 30});  // batches of 30 and 10
  manager.begin_run(run_, network_, loader);
  manager.begin_epoch();
  loader.begin_epoch(0);
  manager.track_loss(1.0, *loader.next());
  manager.track_loss(2.0, *loader.next());
  EXPECT_DOUBLE_EQ(*manager.end_epoch()["loss"], 1.25);
}

TEST_F(RunManagerTest, CountsOutputsThatAreLargestAtTheLabel) {
  RunManager manager = this->manager();
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
}

TEST_F(RunManagerTest, StartsTheSessionWithEverySweptKeyAndItsTypeAndEndsItWithSuccess) {
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  manager.end_run();
  proto::HParamsPluginData start, end;
  const auto starts = values_of(events(), "_hparams_/session_start_info");
  const auto ends = values_of(events(), "_hparams_/session_end_info");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  ASSERT_TRUE(start.ParseFromString(starts[0].metadata().plugin_data().content()));
  ASSERT_TRUE(end.ParseFromString(ends[0].metadata().plugin_data().content()));
  const auto& hparams = start.session_start_info().hparams();
  ASSERT_EQ(hparams.size(), 4u);
  EXPECT_EQ(hparams.at("lr").number_value(), 0.5);
  EXPECT_EQ(hparams.at("n").number_value(), 3);
  EXPECT_EQ(hparams.at("shuffle").kind_case(), google::protobuf::Value::kBoolValue);
  EXPECT_EQ(hparams.at("device").string_value(), "cpu");
  EXPECT_EQ(end.session_end_info().status(), proto::STATUS_SUCCESS);
  EXPECT_TRUE(values_of(events(), "_hparams_/experiment").empty());
}

proto::SessionStatus last_status(const std::vector<proto::Event>& events) {
  const auto ends = values_of(events, "_hparams_/session_end_info");
  proto::HParamsPluginData end;
  EXPECT_EQ(ends.size(), 1u);
  EXPECT_TRUE(end.ParseFromString(ends.at(0).metadata().plugin_data().content()));
  return end.session_end_info().status();
}

TEST_F(RunManagerTest, EndsAFailedSessionAsFailureAndSaysWhy) {
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  manager.end_run(RunStatus::kFailed, "it <diverged>");
  EXPECT_EQ(last_status(events()), proto::STATUS_FAILURE);
  EXPECT_THAT(values_of(events(), "status").at(0).tensor().string_val(0), HasSubstr("it &lt;diverged&gt;"));
  EXPECT_EQ(record().status, RunStatus::kFailed);
  EXPECT_EQ(record().error, "it <diverged>");
}

TEST_F(RunManagerTest, LeavesTheSessionOfAnInterruptedRunOpen) {
  {
    RunManager manager = this->manager();
    manager.begin_run(run_, network_, loader_);
  }
  EXPECT_TRUE(values_of(events(), "_hparams_/session_end_info").empty());
  EXPECT_EQ(record().status, RunStatus::kInterrupted);
}

TEST_F(RunManagerTest, SaysThatARunIsRunningWhileItIs) {
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  EXPECT_EQ(record().status, RunStatus::kRunning);
}

TEST_F(RunManagerTest, ShowsTheFirstBatchAsAGridOfEightARow) {
  RunManager manager = this->manager();
  run_.log.images = 64;
  manager.begin_run(run_, network_, loader_);
  manager.end_run();
  const auto images = values_of(events(), "images");
  ASSERT_EQ(images.size(), 1u);
  // 10 pictures of 4x4 in two rows: 8 * (4 + 2) + 2 by 2 * (4 + 2) + 2 pixels.
  EXPECT_EQ(images[0].image().width(), 50);
  EXPECT_EQ(images[0].image().height(), 14);
}

TEST_F(RunManagerTest, WritesHistogramsOfEveryParameterAndGradient) {
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  manager.begin_epoch();
  const std::size_t count = network_.parameter_count();
  manager.track_parameters(std::vector<float>(count, 2), std::vector<float>(count, -1));
  manager.end_epoch();
  manager.end_run();
  for (const char* tag :
       {"weights/out.weight", "weights/out.bias", "gradients/out.weight", "gradients/out.bias"}) {
    EXPECT_EQ(values_of(events(), tag).size(), 1u) << tag;
  }
  EXPECT_EQ(values_of(events(), "weights/out.weight")[0].histo().num(), 3 * 16);
  EXPECT_EQ(values_of(events(), "gradients/out.bias")[0].histo().sum(), -3);
}

// Counts by itself, as an engine does whose values are far away.
class CountingEngine final : public Engine {
 public:
  CountingEngine(const Network& network, std::vector<float> values)
      : network_(network), values_(std::move(values)) {}
  void train(const Batch&, double) override {}
  void evaluate(const Batch&) override {}
  void predict(const Batch&, std::span<float>) override {}
  Totals take_totals() override { return {}; }
  std::vector<float> parameters() const override { throw std::logic_error("values were copied"); }
  void set_parameters(std::span<const float>) override {}
  std::vector<float> gradients() const override { throw std::logic_error("gradients were copied"); }
  std::vector<OptimizerState> optimizer_state() const override { return {}; }
  std::int64_t step_count() const override { return 0; }
  void set_optimizer_state(std::span<const OptimizerState>, std::int64_t) override {}

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
    RunManager manager = this->manager();
    manager.begin_run(run_, network_, loader_);
    manager.begin_epoch();
    if (counted) {
      manager.track_parameters(engine);
    } else {
      manager.track_parameters(values, values);
    }
    manager.end_epoch();
    manager.end_run();
    for (const char* tag :
         {"weights/out.weight", "weights/out.bias", "gradients/out.weight", "gradients/out.bias"}) {
      ASSERT_EQ(values_of(events(), tag).size(), 1u) << tag;
      written[counted].push_back(values_of(events(), tag)[0].histo().SerializeAsString());
    }
  }
  EXPECT_EQ(written[0], written[1]);
}

TEST_F(RunManagerTest, RefusesCountsOfAnotherNetwork) {
  NetworkSpec spec = small_network();
  spec.layers.back().arguments["bias"] = false;
  const Network other(spec, {1, 4, 4});
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  manager.begin_epoch();
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
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  manager.begin_epoch();
  manager.track_parameters(std::vector<float>(network_.parameter_count()), {});
  manager.end_epoch();
  manager.track_predictions(data_.validation, std::vector<float>(30), data_.class_names, "validation");
  manager.end_run();
  std::set<std::string> tags;
  for (const proto::Event& event : events()) {
    EXPECT_TRUE(event.graph_def().empty());
    for (const auto& value : event.summary().value()) tags.insert(value.tag());
  }
  EXPECT_THAT(tags, ElementsAre("Accuracy/train", "Duration/epoch_seconds", "Loss/train",
                                "Number Correct/train", "Time/data_wait_seconds", "Time/images_per_second"));
}

TEST_F(RunManagerTest, WritesTheSameChartLayoutInEveryRun) {
  RunManager manager = this->manager();
  const auto runs = RunBuilder::get_runs({{"lr", {1, 2}}});
  for (const sweep::Run& run : runs) {
    manager.begin_run(run, network_, loader_);
    manager.end_run();
  }
  const auto layouts = [&](const sweep::Run& run) {
    return values_of(read_run(temporary_.path() / "sweep" / run.name), "custom_scalars__config__");
  };
  ASSERT_EQ(layouts(runs[0]).size(), 1u);
  ASSERT_EQ(layouts(runs[1]).size(), 1u);
  EXPECT_EQ(layouts(runs[0])[0].tensor().SerializeAsString(),
            layouts(runs[1])[0].tensor().SerializeAsString())
      << "TensorBoard drops equal charts when it merges layouts";
}

TEST_F(RunManagerTest, ReplacesTheFilesOfAnEarlierStart) {
  for (int i = 0; i < 2; ++i) {
    RunManager manager = this->manager();
    manager.begin_run(run_, network_, loader_);
    manager.begin_epoch();
    manager.end_epoch();
    manager.end_run();
  }
  EXPECT_EQ(values_of(events(), "Loss/train").size(), 1u);
}

TEST_F(RunManagerTest, SavesCsvAndJsonOfAllRuns) {
  RunManager manager = this->manager();
  for (const sweep::Run& run : RunBuilder::get_runs({{"lr", {1, 2}}})) {
    manager.begin_run(run, network_, loader_);
    manager.begin_epoch();
    track(manager, 1, 1, 2);
    manager.end_epoch();
    manager.end_run();
  }
  manager.save("results");
  const auto rows = parse_csv(tbwriter::slurp(temporary_.path() / "sweep/results.csv"));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].back(), "lr");
  EXPECT_EQ(rows[2].back(), "2");
  const auto json = nlohmann::json::parse(tbwriter::slurp(temporary_.path() / "sweep/results.json"));
  EXPECT_EQ(json["sweep"], "sweep");
  EXPECT_EQ(json["runs"].size(), 2u);
}

TEST_F(RunManagerTest, AnEpochWithoutSamplesHasNoLoss) {
  RunManager manager = this->manager();
  manager.begin_run(run_, network_, loader_);
  manager.begin_epoch();
  EXPECT_TRUE(std::isnan(*manager.end_epoch()["loss"]));
}

TEST_F(RunManagerTest, RefusesCallsOutOfOrder) {
  RunManager manager = this->manager();
  EXPECT_THROW(manager.begin_epoch(), std::logic_error);
  EXPECT_THROW(manager.end_run(), std::logic_error);
  EXPECT_THROW(manager.run_directory(), std::logic_error);
  manager.begin_run(run_, network_, loader_);
  EXPECT_THROW(manager.begin_run(run_, network_, loader_), std::logic_error);
  EXPECT_THROW(manager.end_epoch(), std::logic_error);
  EXPECT_THROW(track(manager, 1, 1, 1), std::logic_error);
  manager.begin_epoch();
  EXPECT_THROW(manager.begin_epoch(), std::logic_error);
}

TEST_F(RunManagerTest, RefusesARunWithoutAName) {
  RunManager manager = this->manager();
  EXPECT_THROW(manager.begin_run(sweep::Run{}, network_, loader_), ConfigError);
}

}  // namespace
}  // namespace sweep
