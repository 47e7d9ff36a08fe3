// What RunRecorder does beyond RunManager: resumed, skipped and lost runs.
#include "runmanager/training/run_recorder.h"

#include <sys/stat.h>

#include "runmanager/inspect/fsck.h"
#include "runmanager/records/run_files.h"
#include "runmanager/training/log_file.h"
#include "runmanager/training/resume_point.h"
#include "tbwriter/event_files.h"
#include "tests/runmanager/training/run_files.h"
#include "tests/support/event_files.h"

namespace sweep::run_recorder_test {

class RunRecorderTest : public test::RunFiles {
 protected:
  RecorderOptions options() {
    return {.directory = sweep_directory(),
            .clock = [this] { return seconds_; },
            .learning_rate = [](int) { return 0.5; }};
  }
  RunRecorder begin() { return {options(), run_, {&network_, &loader_}, record_}; }
  RunRecorder resume(const RunProgress& progress) {
    return {options(), run_, {&network_, &loader_}, progress, record_};
  }
  // The progress of a run of so many epochs of a second whose process was then killed.
  RunProgress killed_after(int epochs) {
    RunRecorder run = begin();
    for (int epoch = 0; epoch < epochs; ++epoch) {
      run.begin_epoch();
      run.track_learning_rate(0.5);
      track(run, 2.0 + epoch, 5, 10);
      seconds_ += 1;
      run.end_epoch();
    }
    run.flush(Survives::kPowerCut);
    return {run.record(), run.position(epochs)};
  }

  RunRecord record_;
};

TEST_F(RunRecorderTest, KeepsSetupTimeApartFromTheEpochsAndAcrossAResume) {
  RunProgress progress;
  {
    RunRecorder run = begin();
    run.track_setup(0.75, Placement::kHost);
    for (int epoch = 0; epoch < 2; ++epoch) {
      run.begin_epoch();
      track(run, 2.0, 5, 10);
      seconds_ += 2;
      run.track_device_seconds(1.5 + epoch);
      seconds_ += 1;
      run.end_epoch();
    }
    progress = {run.record(), run.position(2)};
    run.end(RunStatus::kCompleted, "");
  }
  const auto points = [this](const std::string& tag) {
    std::vector<double> found;
    for (const auto& value : values_of(tag)) found.push_back(value.simple_value());
    return found;
  };
  EXPECT_THAT(points("Time/setup_seconds"), SizeIs(0)) << "a chart of one point";
  EXPECT_THAT(values_of("metrics").at(0).tensor().string_val(0), HasSubstr("| setup\\_seconds | 0.75 |"));
  EXPECT_THAT(points("Time/device_seconds"), ElementsAre(1.5, 2.5));
  EXPECT_THAT(points("Duration/epoch_seconds"), ElementsAre(2, 2));
  EXPECT_EQ(record().setup_seconds, 0.75);
  EXPECT_EQ(record().placement, "host");
  EXPECT_EQ(record().epochs[1]["device_seconds"], 2.5);

  RunRecorder resumed = resume(progress);
  resumed.track_setup(5, Placement::kDevice);
  resumed.end(RunStatus::kCompleted, "");
  EXPECT_EQ(record().setup_seconds, 0.75) << "of the first start";
  EXPECT_EQ(record().placement, "device") << "of the last start";
  EXPECT_EQ(record().epochs.size(), 2u);
}

// Wherever a kill ends the process that trains a finished run further, fsck calls nothing damaged.
TEST_F(RunRecorderTest, AFinishedRunThatGoesOnIsUndamagedAtEachMoment) {
  RunProgress progress;
  {
    RunRecorder run = begin();
    run.begin_epoch();
    track(run, 2.0, 5, 10);
    run.end_epoch();
    progress = {run.record(), run.position(1)};
    run.end(RunStatus::kCompleted, "");
  }
  int looks = 0;
  const auto look = [&] {
    const FsckReport report = check_directory(run_directory());
    EXPECT_EQ(report.damaged(), 0u) << fsck_text(report);
    ++looks;
  };
  const fs::path copy = temporary_ / "copy";
  fs::copy(sweep_directory(), copy, fs::copy_options::recursive);
  RecorderOptions watched = options();
  watched.check_owner = look;  // called before each change of run.json
  {
    const RunRecorder resumed(watched, run_, {&network_, &loader_}, progress, record_);
    look();
  }
  EXPECT_GE(looks, 2);
  // The same where several processes share the sweep.
  fs::remove_all(sweep_directory());
  fs::rename(copy, sweep_directory());
  ResumePoint point;
  point.checkpoint.emplace().progress = progress;
  point.checkpoint->state.weights.parameters.resize(network_.parameter_count());
  take_over_run(run_directory(), "id", network_, look, point);
  look();
}

// A process is killed once its checkpoint tells of its copy of the events, before it has removed the old
// ones.
TEST_F(RunRecorderTest, AnInterruptedTakeOverLeavesNoPointTwice) {
  for (const bool shared : {true, false}) {
    SCOPED_TRACE(shared);
    ResumePoint point;
    point.checkpoint.emplace().progress = killed_after(2);
    point.checkpoint->state.weights.parameters.resize(network_.parameter_count());
    const fs::path old = run_directory() / point.checkpoint->progress.position.events_file;
    const std::string events = read_file(old);
    const auto take_over = [&] {
      take_over_run(
          run_directory(), "id", network_, [] {}, point);
    };
    take_over();
    tbwriter::spill(old, events);
    point.checkpoint = read_checkpoint(run_directory() / kCheckpointFile, network_);
    if (shared) take_over();
    RecorderOptions next = options();
    next.shared = shared;
    RunRecorder resumed(next, run_, {&network_, &loader_}, point.checkpoint->progress, record_);
    EXPECT_EQ(resumed.restored_epochs(), 0u);
    resumed.end(RunStatus::kInterrupted, "");
    EXPECT_THAT(values_of("Loss/train"), SizeIs(2));
  }
}

TEST_F(RunRecorderTest, WritesLostEpochsAgainWhereverTheEventsEnd) {
  const RunProgress progress = killed_after(3);
  const std::string& file = progress.position.events_file;
  const std::string whole = read_file(run_directory() / file);
  const auto points = [this] {
    std::map<std::string, std::map<std::int64_t, double>> all;
    for (const proto::Event& event : events()) {
      for (const auto& value : event.summary().value()) {
        const bool is_new = all[value.tag()].emplace(event.step(), value.simple_value()).second;
        EXPECT_TRUE(is_new) << value.tag() << ": a step has two values";
      }
    }
    return all;
  };
  const auto wanted = points();
  for (std::size_t size = 0; size <= whole.size(); size += size + 50 < whole.size() ? 50 : 1) {
    SCOPED_TRACE(size);
    for (const std::string& name : tbwriter::list_event_files(run_directory()))
      std::filesystem::remove(run_directory() / name);
    if (size > 0) tbwriter::spill(run_directory() / file, whole.substr(0, size));
    RunRecorder resumed = resume(progress);
    resumed.end(RunStatus::kInterrupted, "");
    EXPECT_EQ(points(), wanted);
    EXPECT_EQ(record_.epochs.size(), 3u);
  }
}

TEST_F(RunRecorderTest, WritesTheEventsAnewWhereTheyAreOfAnotherStart) {
  RunProgress progress = killed_after(1);
  progress.position.events_file = "events.out.tfevents.1.elsewhere";
  RunRecorder resumed = resume(progress);
  EXPECT_EQ(resumed.restored_epochs(), 1u);
  resumed.end(RunStatus::kCompleted, "");
  EXPECT_THAT(values_of("Loss/train"), SizeIs(1));
  EXPECT_THAT(values_of("_hparams_/session_start_info"), SizeIs(1));
}

TEST_F(RunRecorderTest, ALostRunKeepsItsEventsAndGetsAnEnd) {
  const RunProgress progress = killed_after(1);
  EXPECT_EQ(record().status, RunStatus::kRunning);
  CheckpointMetadata metadata;
  update(metadata, progress.record, progress.position);
  TrainingState state;
  state.weights.parameters.resize(network_.parameter_count());
  write_checkpoint(run_directory() / kBestFile, network_, state, metadata, Survives::kKill);
  record_.status = RunStatus::kFailed;
  record_.error = "its worker was lost";
  record_end(options(), run_, record_);
  EXPECT_EQ(last_status(), proto::STATUS_FAILURE);
  EXPECT_THAT(values_of("Loss/train"), SizeIs(1));
  EXPECT_THAT(values_of("_hparams_/session_start_info"), SizeIs(1));
  EXPECT_EQ(record().error, "its worker was lost");
  EXPECT_EQ(record().epochs.size(), 1u);
  EXPECT_EQ(record().best_epoch, 1);
}

TEST(LogFile, AppendsLinesAtOnce) {
  TemporaryDirectory directory;
  LogFile log(directory / "log.txt", /*is_new=*/true);
  log.info("{}", "one");
  EXPECT_THAT(read_file(directory / "log.txt"), EndsWith(" info one\n"));
  LogFile(directory / "log.txt", /*is_new=*/false).warn("two");
  EXPECT_THAT(read_file(directory / "log.txt"), testing::ContainsRegex(" info one\n.* warning two\n"));
  tbwriter::spill(directory / "killed", "within a line");
  LogFile(directory / "killed", /*is_new=*/false).info("three");
  EXPECT_THAT(read_file(directory / "killed"), testing::MatchesRegex("within a line\n.* info three\n"));
}

TEST(LogFile, KeepsTheBeginningAndTheEndOfLongOutput) {
  TemporaryDirectory directory;
  for (const bool is_new : {true, false}) {
    LogFile log(directory / "log.txt", is_new, /*kept=*/10);
    log.write_output("beginning.");
    for (int i = 0; i < 1000; ++i) log.write_output("middle");
    log.write_output("end");
    log.end_line();
    log.end_line();
    EXPECT_THAT(read_file(directory / "log.txt"),
                MatchesRegex("beginning.\n\\[... about [0-9]+ bytes are left out here ...\\]\n.*end\n"));
    EXPECT_LT(read_file(directory / "log.txt").size(), 100u);
  }
}

TEST(LogFile, IsWrittenThroughNoLinkAndIntoNoPipe) {
  TemporaryDirectory directory;
  tbwriter::spill(directory / "precious", "mine");
  std::filesystem::create_symlink("precious", directory / "log.txt");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const bool is_new : {true, false}) {
    EXPECT_THROW(LogFile(directory / "log.txt", is_new), IoError);
    EXPECT_THROW(LogFile(directory / "pipe", is_new), IoError);
  }
  EXPECT_EQ(read_file(directory / "precious"), "mine");
}

}  // namespace sweep::run_recorder_test
