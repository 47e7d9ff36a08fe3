#include "runmanager/inspect/sweep_status.h"

#include "core/base/file.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/watch.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/terminal/results_table.h"
#include "tests/support/run_world.h"

namespace sweep::sweep_status_test {

// A log directory with one sweep.
class SweepListing : public ::testing::Test {
 protected:
  SweepListing() { world_.run(small_sweep()); }

  SweepStatus only_sweep() const {
    const std::vector<SweepStatus> sweeps = list_sweeps(logdir_);
    EXPECT_THAT(sweeps, SizeIs(1));
    return sweeps.at(0);
  }

  World world_;
  const fs::path logdir_ = world_.options.logdir;
};

TEST_F(SweepListing, CountsTheRunsOfEachSweepAndNamesTheBest) {
  fs::create_directory(logdir_ / "notes");
  const SweepStatus sweep = only_sweep();
  EXPECT_EQ(sweep.directory, logdir_ / "small");
  EXPECT_EQ(sweep.runs, 2u);
  EXPECT_THAT(sweep.statuses, ElementsAre(Pair(RunStatus::kCompleted, 2u)));
  EXPECT_FALSE(sweep.is_held);
  EXPECT_EQ(sweep.best, kFirst);
  EXPECT_FALSE(sweep.started.empty());
  EXPECT_GE(sweep.ended, sweep.started);
}

// A run waits while its sweep lives, and is interrupted after that: for the status and for the table.
TEST_F(SweepListing, HasOneWordForARunThatIsNotTrained) {
  const fs::path file = logdir_ / "small" / kFirst / "run.json";
  RunRecord record = read_run_record(file);
  record.status = RunStatus::kInterrupted;
  tbwriter::spill(file, run_record_text(record));
  for (const auto& [is_held, status] :
       {std::pair(true, RunStatus::kPending), {false, RunStatus::kInterrupted}}) {
    std::optional<SweepDirectory> held;
    if (is_held) held.emplace(SweepDirectory::open(logdir_, "small", false));
    EXPECT_THAT(only_sweep().statuses,
                UnorderedElementsAre(Pair(status, 1u), Pair(RunStatus::kCompleted, 1u)));
    const std::vector<RunRecord> runs = read_current_sweep(logdir_ / "small", is_held).runs;
    EXPECT_EQ(runs[0].status, status);
    EXPECT_EQ(read_current_run(file.parent_path()).status, status);
    EXPECT_THAT(results_table(runs, param_keys(runs)), HasSubstr(std::string(to_string(status)) + "  "));
  }
}

// As those of a loop of one's own, which leaves no sweep.json, and whose runs take milliseconds.
TEST_F(SweepListing, RunsThatStartedInOneSecondAreInTheOrderOfTheirEnds) {
  const fs::path sweep = logdir_ / "small";
  fs::remove(sweep / "sweep.json");
  std::vector<std::string> names;
  for (RunRecord& run : list_runs(sweep)) {
    run.started = "2026-01-01T00:00:00Z";
    tbwriter::spill(sweep / run.name / "run.json", run_record_text(run));
    names.push_back(run.name);
  }
  for (int order = 0; order < 2; ++order) {
    std::ranges::reverse(names);
    fs::file_time_type time = fs::last_write_time(sweep / names[0] / "run.json");
    for (const std::string& name : names)
      fs::last_write_time(sweep / name / "run.json", time += std::chrono::milliseconds(10));
    std::vector<std::string> listed;
    for (const RunRecord& run : list_runs(sweep)) listed.push_back(run.name);
    EXPECT_EQ(listed, names);
  }
}

TEST_F(SweepListing, FindsSweepsInFoldersAndFollowsNoLinks) {
  fs::create_directory(logdir_ / "monday");
  fs::rename(logdir_ / "small", logdir_ / "monday/small");
  fs::create_directory_symlink(logdir_, logdir_ / "monday/back");
  EXPECT_EQ(only_sweep().directory, logdir_ / "monday/small");
}

TEST_F(SweepListing, ASweepThatCannotBeReadIsListedWithTheReason) {
  const fs::path record = logdir_ / "small" / kFirst / "run.json";
  tbwriter::spill(record, "{");
  EXPECT_THAT(only_sweep().problem, HasSubstr(record.string()));
  fs::remove(record);
  fs::create_symlink("run.json", record);  // to itself
  EXPECT_THAT(only_sweep().problem, HasSubstr(record.string() + ": "));
}

TEST(ListSweeps, AnEmptyDirectoryHasNoneAndAMissingOneIsAnError) {
  const TemporaryDirectory directory;
  EXPECT_THAT(list_sweeps(directory.path()), IsEmpty());
  EXPECT_THAT(test::message_of<DataError>([&] { list_sweeps(directory.path() / "runs"); }),
              HasSubstr("is not there; want the directory of a sweep"));
}

// Watching sweeps whose whole progress no single process knows: joined ones, and those on a cluster.

using ::testing::Field;

RunRecord ended_record(const std::string& name, RunStatus status, const std::string& when) {
  RunRecord record;
  record.name = name;
  record.status = status;
  record.ended = when;
  return record;
}

// Trials that a search leaves for good are no reason to go on.
TEST(SweepStatus, OfASearchThatHasFoundOrTakenEnoughHasEnded) {
  for (const auto& [search, end] : std::map<std::string, std::string>{
           {R"("target": 0.5)", "loss of 0.5 is reached"},
           {R"("target": 0.4)", ""},
           {R"("seconds": 9)", "trials have taken the 9.00 s that they may"}}) {
    TemporaryDirectory directory;
    write_file_atomically(directory / "sweep.json", R"({"name": "s", "command": ["true"], "runs": ["a", "b"],
        "search": {"method": "random", "trials": 2, )" + search +
                                                        "}}");
    std::filesystem::create_directory(directory / "a");
    RunRecord run = ended_record("a", RunStatus::kCompleted, "2026-01-01T00:00:09Z");
    run.epochs = {EpochRecord(1, {{"loss", 0.5}})};
    run.run_seconds = 9;
    write_file_atomically(directory / "a/run.json", run_record_text(run));
    const SweepStatus status = sweep_status(directory.path());
    EXPECT_EQ(status.search_end, end) << search;
    EXPECT_EQ(status.unfinished, end.empty() ? 1u : 0u);
    EXPECT_EQ(status.state, end.empty() ? SweepState::kInterrupted : SweepState::kEnded);
    EXPECT_THAT(status_text(status, {}), HasSubstr(end.empty() ? "To go on" : "No more trials: " + end));
  }
}

TEST(SweepStatus, OfASearchThatWasStoppedBetweenTwoTrialsIsInterrupted) {
  for (const auto& [trials, state] : {std::pair(2, SweepState::kInterrupted), {1, SweepState::kEnded}}) {
    TemporaryDirectory directory;
    write_file_atomically(directory / "sweep.json",
                          fmt::format(R"({{"name": "s", "command": ["true", "{{x}}"],
        "params": {{"x": {{"uniform": [0, 1]}}}}, "runs": ["a"],
        "search": {{"method": "tpe", "trials": {}, "at_once": 1}}, "provenance": {{}}}})",
                                      trials));
    std::filesystem::create_directory(directory / "a");
    RunRecord run = ended_record("a", RunStatus::kCompleted, "2026-01-01T00:00:09Z");
    run.epochs = {EpochRecord(1, {{"loss", 0.5}})};
    write_file_atomically(directory / "a/run.json", run_record_text(run));
    const SweepStatus status = sweep_status(directory.path());
    EXPECT_EQ(status.state, state) << trials;
    EXPECT_EQ(status.unfinished, static_cast<std::size_t>(trials) - 1);
  }
}

TEST(RecordedProgress, TellsWhatHasEndedSinceTheLastTimeInTheOrderOfTheirEnds) {
  RecordedProgress progress("s");
  std::vector<RunRecord> runs = {ended_record("a", RunStatus::kCompleted, "2026-01-01T00:00:09Z"),
                                 ended_record("b", RunStatus::kFailed, "2026-01-01T00:00:03Z"),
                                 ended_record("c", RunStatus::kRunning, ""),
                                 ended_record("d", RunStatus::kInterrupted, ""),
                                 ended_record("e", RunStatus::kPending, "")};
  runs[2].config["epochs"] = 7;
  runs[2].epochs.resize(3);
  const LiveSweep& live = progress.update(runs, default_goals(runs));
  EXPECT_THAT(live.latest, ElementsAre(Field(&RunRecord::name, "b"), Field(&RunRecord::name, "a")));
  EXPECT_EQ(live.finished(), 2u);
  EXPECT_DOUBLE_EQ(live.fraction(), 2 / 5.0);
  EXPECT_EQ(live.earlier_work, 2) << "nobody has seen how long that took";
  ASSERT_EQ(live.active.size(), 1u);
  EXPECT_EQ(live.active.at(3).epochs, 7);
  EXPECT_EQ(live.active.at(3).finished_epochs, 3);
  progress.update(runs, default_goals(runs));
  EXPECT_EQ(live.latest.size(), 2u);
  EXPECT_EQ(live.ends, 2u);
  // One that failed is tried again.
  runs[1].status = RunStatus::kRunning;
  EXPECT_EQ(progress.update(runs, default_goals(runs)).active.size(), 2u);
  runs[1] = ended_record("b", RunStatus::kCompleted, "2026-01-01T00:01:00Z");
  EXPECT_THAT(progress.update(runs, default_goals(runs)).ended, ElementsAre(Pair(RunStatus::kCompleted, 2u)));
  EXPECT_EQ(live.latest.size(), 3u);
  EXPECT_EQ(live.latest.back().name, "b");
  EXPECT_EQ(live.earlier_work, 2);
  const Json tpe = {{"search", {{"method", "tpe"}, {"trials", 8}}}},
             random = {{"search", {{"method", "random"}, {"trials", 8}}}};
  EXPECT_EQ(trials_to_come(random), 0u) << "all are there from the start, maybe fewer";
  EXPECT_DOUBLE_EQ(progress.update(runs, default_goals(runs), trials_to_come(tpe)).fraction(), 2 / 8.0);
}

// A sweep of two runs; the second one has not ended.
class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    world_.run(small_sweep());
    directory_ = world_.options.logdir / "small";
    for (const RunRecord& run : list_runs(directory_)) record_ = run;
    put(RunStatus::kRunning);
    options_.terminal.write = [this](std::string_view text) { said_ += text; };
    options_.stop_requested = [this] { return std::chrono::steady_clock::now() > end_; };
    options_.wait = [this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (++waited_ == 5 && after_a_while_) after_a_while_();
    };
  }

  void put(RunStatus status) const {
    RunRecord record = record_;
    record.status = status;
    if (status != RunStatus::kCompleted) record.ended.clear();
    write_file_atomically(directory_ / record.name / "run.json", run_record_text(record), Survives::kKill);
  }
  void watch() { watch_sweep(directory_, options_); }

  World world_;
  fs::path directory_;
  RunRecord record_;  // of the second run, completed
  WatchOptions options_;
  std::string said_;
  int waited_ = 0;
  std::function<void()> after_a_while_;
  const std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
};

TEST_F(WatchTest, ShowsTheRunsOfASweepThatSeveralProcessesTrain) {
  auto shared = std::make_unique<SweepDirectory>(
      SweepDirectory::join(directory_.parent_path(), directory_.filename().string()));
  shared->plan(
      "start", [](bool) {}, [] { return 0; });
  after_a_while_ = [&] {
    EXPECT_THAT(said_, AllOf(HasSubstr("★ lr=0.5"), Not(HasSubstr("ended"))));
    put(RunStatus::kCompleted);
    shared.reset();
  };
  watch();
  EXPECT_THAT(said_, AllOf(HasSubstr("[2/2] "), HasSubstr("epoch"), HasSubstr("ended: 2 completed")));
}

TEST_F(WatchTest, WaitsForTasksOnAClusterAndSaysWhatTheyDo) {
  put(RunStatus::kPending);
  bool lives = true;
  options_.terminal.interactive = true;
  options_.elsewhere = [&] {
    return WatchedElsewhere{.lives = lives, .line = "Slurm: 0 tasks run, 3 wait (Resources)"};
  };
  after_a_while_ = [&] {
    EXPECT_THAT(said_, AllOf(HasSubstr("1/2 runs"), HasSubstr("3 wait (Resources)")));
    EXPECT_THAT(said_, Not(HasSubstr("interrupted")));
    lives = false;
  };
  watch();
  EXPECT_THAT(said_, HasSubstr("interrupted: 1 pending, 1 completed"));
}

TEST_F(WatchTest, EndsWithTheLastRunWhateverIsKnownOfTasks) {
  options_.elsewhere = [] { return WatchedElsewhere{.lives = true, .line = ""}; };
  after_a_while_ = [&] { put(RunStatus::kCompleted); };
  watch();
  EXPECT_THAT(said_, HasSubstr("ended: 2 completed"));
}

}  // namespace sweep::sweep_status_test
