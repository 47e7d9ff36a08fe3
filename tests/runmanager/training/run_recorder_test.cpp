// What RunRecorder does beyond RunManager: resumed, skipped and lost runs.
#include "runmanager/training/run_recorder.h"
#include "runmanager/training/ended_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "proto/tensorboard/hparams.pb.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using tbwriter::read_run;
using tbwriter::values_of;
using ::testing::HasSubstr;

class RunRecorderTest : public ::testing::Test {
 protected:
  RecorderOptions options() {
    return {.directory = temporary_.path() / "sweep", .clock = [this] { return seconds_; }, .provenance = {}};
  }

  static void track(RunRecorder& recorder, double loss, std::int64_t correct, std::int64_t samples) {
    recorder.track({.loss = loss * static_cast<double>(samples), .correct = correct, .samples = samples});
  }

  std::vector<proto::Event> events() const { return read_run(temporary_.path() / "sweep" / run_.name); }
  RunRecord saved_record() const {
    return read_run_record(temporary_.path() / "sweep" / run_.name / "run.json");
  }
  proto::SessionStatus last_status() const {
    const auto ends = values_of(events(), "_hparams_/session_end_info");
    proto::HParamsPluginData end;
    EXPECT_EQ(ends.size(), 1u);
    EXPECT_TRUE(end.ParseFromString(ends.at(0).metadata().plugin_data().content()));
    return end.session_end_info().status();
  }

  TemporaryDirectory temporary_;
  double seconds_ = 100;
  Dataset data_ = small_dataset();
  Network network_{small_network(), {1, 4, 4}};
  DataLoader loader_{data_.train, {.batch_size = 10}};
  ImageGridCache grids_;
  RunRecord record_;
  sweep::Run run_ = RunBuilder::get_runs({{"lr", {0.5}}, {"device", {"cpu"}}}).at(0);
};

TEST_F(RunRecorderTest, KeepsSetupTimeApartFromTheEpochsAndAcrossAResume) {
  RunProgress progress;
  {
    RunRecorder recorder(options(), run_, {&network_, &loader_}, grids_, record_);
    recorder.track_setup(0.75, Placement::kHost);
    for (int epoch = 0; epoch < 2; ++epoch) {
      recorder.begin_epoch();
      track(recorder, 2.0, 5, 10);
      seconds_ += 2;
      recorder.track_device_seconds(1.5 + epoch);
      seconds_ += 1;
      recorder.end_epoch();
    }
    progress = {recorder.record(), recorder.position(2)};
    recorder.end(RunStatus::kCompleted, "");
  }
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> points;
  for (const proto::Event& event : events()) {
    for (const auto& value : event.summary().value())
      points[value.tag()].emplace_back(event.step(), value.simple_value());
  }
  using Points = std::vector<std::pair<std::int64_t, double>>;
  EXPECT_FALSE(points.contains("Time/setup_seconds")) << "a chart of one point";
  EXPECT_THAT(values_of(events(), "metrics").at(0).tensor().string_val(0),
              HasSubstr("| setup\\_seconds | 0.75 |"));
  EXPECT_EQ(points["Time/device_seconds"], (Points{{1, 1.5}, {2, 2.5}}));
  EXPECT_EQ(points["Duration/epoch_seconds"], (Points{{1, 2}, {2, 2}}));
  EXPECT_EQ(saved_record().setup_seconds, 0.75);
  EXPECT_EQ(saved_record().placement, "host");
  EXPECT_EQ(saved_record().epochs[1]["device_seconds"], 2.5);

  RunRecorder resumed(options(), run_, {&network_, &loader_}, progress, record_);
  resumed.track_setup(5, Placement::kDevice);
  resumed.end(RunStatus::kCompleted, "");
  EXPECT_EQ(saved_record().setup_seconds, 0.75) << "of the first start";
  EXPECT_EQ(saved_record().placement, "device") << "of the last start";
  EXPECT_EQ(saved_record().epochs.size(), 2u);
}

TEST_F(RunRecorderTest, WritesLostEpochsAgainWhereverTheEventsEnd) {
  RunProgress progress;
  const auto epochs = [&](RunRecorder& recorder, int count) {
    for (int epoch = 0; epoch < count; ++epoch) {
      recorder.begin_epoch();
      recorder.track_learning_rate(0.5);
      track(recorder, 2.0 + epoch, 5, 10);
      seconds_ += 1;
      recorder.end_epoch();
    }
  };
  {
    RunRecorder recorder(options(), run_, {&network_, &loader_}, grids_, record_);
    recorder.track_setup(0.75);
    epochs(recorder, 3);
    progress = {recorder.record(), recorder.position(3)};
    recorder.flush(Survives::kPowerCut);
  }
  const std::filesystem::path directory = temporary_.path() / "sweep" / run_.name;
  const std::string whole = tbwriter::slurp(directory / progress.position.events_file);
  const auto points = [this] {
    std::map<std::string, std::map<std::int64_t, double>> all;
    std::size_t count = 0;
    for (const proto::Event& event : events()) {
      for (const auto& value : event.summary().value()) {
        all[value.tag()][event.step()] = value.simple_value();
        ++count;
      }
    }
    std::size_t distinct = 0;
    for (const auto& [tag, steps] : all) distinct += steps.size();
    EXPECT_EQ(count, distinct) << "a step has two values";
    return all;
  };
  const auto wanted = points();
  for (std::size_t size = 0; size <= whole.size(); size += size + 50 < whole.size() ? 50 : 1) {
    SCOPED_TRACE(size);
    for (const std::string& name : tbwriter::list_event_files(directory))
      std::filesystem::remove(directory / name);
    if (size > 0) tbwriter::spill(directory / progress.position.events_file, whole.substr(0, size));
    RunRecorder resumed(options(), run_, {&network_, &loader_}, progress, record_);
    resumed.restore_events([](int) { return 0.5; });
    resumed.end(RunStatus::kInterrupted, "");
    EXPECT_EQ(points(), wanted);
    EXPECT_EQ(record_.epochs.size(), 3u);
  }
}

TEST_F(RunRecorderTest, GoesOnWithTheStepsThatTheRunBeganWith) {
  for (const std::int64_t first_step : {0, 1}) {
    RunProgress progress;
    {
      RunRecorder recorder(options(), run_, {&network_, &loader_}, grids_, record_);
      progress = {recorder.record(), recorder.position(0)};
    }
    progress.position.first_step = first_step;
    RunRecorder resumed(options(), run_, {&network_, &loader_}, progress, record_);
    for (int epoch = 1; epoch <= 2; ++epoch) {
      resumed.begin_epoch();
      EXPECT_EQ(resumed.end_epoch().epoch, epoch);
    }
    EXPECT_EQ(resumed.position(0).first_step, first_step);
    resumed.end(RunStatus::kCompleted, "");
    std::vector<std::int64_t> steps;
    for (const proto::Event& event : events()) {
      for (const auto& value : event.summary().value())
        if (value.tag() == "Loss/train") steps.push_back(event.step());
    }
    EXPECT_EQ(steps, (std::vector<std::int64_t>{first_step, first_step + 1}));
  }
}

TEST_F(RunRecorderTest, WritesTheEventsAnewWhereTheyAreOfAnotherStart) {
  RunProgress progress;
  {
    RunRecorder recorder(options(), run_, {&network_, &loader_}, grids_, record_);
    recorder.begin_epoch();
    track(recorder, 1, 1, 2);
    recorder.end_epoch();
    progress = {recorder.record(), recorder.position(0)};
  }
  progress.position.events_file = "events.out.tfevents.1.elsewhere";
  RunRecorder resumed(options(), run_, {&network_, &loader_}, progress, record_);
  EXPECT_EQ(resumed.restore_events([](int) { return 0.5; }), 1u);
  resumed.end(RunStatus::kCompleted, "");
  EXPECT_EQ(values_of(events(), "Loss/train").size(), 1u);
  EXPECT_EQ(values_of(events(), "_hparams_/session_start_info").size(), 1u);
}

TEST_F(RunRecorderTest, LeavesARunThatIsNotEndedAsRunning) {
  { const RunRecorder recorder(options(), run_, {&network_, &loader_}, grids_, record_); }
  EXPECT_EQ(saved_record().status, RunStatus::kRunning);
}

TEST_F(RunRecorderTest, ASkippedRunHasARecordWithItsReasonAndNoEvents) {
  record_skipped_run(options(), run_, RunStatus::kSkipped, "no such device", record_);
  EXPECT_FALSE(has_events(temporary_.path() / "sweep" / run_.name));
  EXPECT_EQ(saved_record().status, RunStatus::kSkipped);
  EXPECT_EQ(saved_record().error, "no such device");
  EXPECT_EQ(record_.status, RunStatus::kSkipped);
}

TEST_F(RunRecorderTest, ASkippedRunThatCountsAsAFailureHasASessionWithTheReason) {
  record_skipped_run(options(), run_, RunStatus::kFailed, "no such device", record_);
  EXPECT_EQ(last_status(), proto::STATUS_FAILURE);
  EXPECT_EQ(values_of(events(), "_hparams_/session_start_info").size(), 1u);
  EXPECT_THAT(values_of(events(), "status").at(0).tensor().string_val(0),
              HasSubstr("**failed**: no such device"));
  EXPECT_TRUE(last_scalars(events()).empty());
}

TEST_F(RunRecorderTest, ALostRunKeepsItsEventsAndGetsAnEnd) {
  {
    RunRecorder recorder(options(), run_, {&network_, &loader_}, grids_, record_);
    recorder.begin_epoch();
    track(recorder, 1, 1, 2);
    recorder.end_epoch();
  }
  record_.status = RunStatus::kFailed;
  record_.error = "its worker was lost";
  record_lost_run(options(), run_, record_);
  EXPECT_EQ(last_status(), proto::STATUS_FAILURE);
  EXPECT_EQ(values_of(events(), "Loss/train").size(), 1u);
  EXPECT_EQ(values_of(events(), "_hparams_/session_start_info").size(), 1u);
  EXPECT_EQ(saved_record().error, "its worker was lost");
  EXPECT_EQ(saved_record().epochs.size(), 1u);
}

}  // namespace
}  // namespace sweep
