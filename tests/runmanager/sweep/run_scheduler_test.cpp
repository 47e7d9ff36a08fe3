// The scheduler alone, with an executor that plays a script instead of training.
#include "runmanager/sweep/run_scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <csignal>
#include <deque>

#include "runmanager/training/stop_signals.h"
#include "tests/support/run_world.h"

namespace sweep::run_scheduler_test {

// What one attempt to train a run does.
enum class Act {
  kComplete,
  kFail,
  kDiverge,
  kLoseProcess,
  kHang,
  kWriteSlowly,
  kFailWriting,
  kFailToBegin,
  kLoseRun
};

class ScriptedExecutor final : public RunExecutor {
 public:
  ScriptedExecutor(double& seconds, std::map<std::size_t, std::vector<Act>> script)
      : seconds_(seconds), script_(std::move(script)) {}

  void start(std::size_t slot, const ScheduledRun& run, const RunRecord& record, int threads) override {
    started.push_back(run.run);
    slots.push_back(slot);
    active_[slot] = {.run = run.run, .act = next_act(run.run), .record = record};
    thread_counts.push_back(threads);
  }
  void set_threads(std::size_t slot, int threads) override { later_threads[slot] = threads; }
  void request_stop(std::size_t slot, int signal) override { stop_requests[slot] = signal; }
  void kill(std::size_t slot) override {
    killed.push_back(active_.at(slot).run);
    active_.at(slot).kill_end = seconds_ + seconds_to_die;
  }
  void wait(std::chrono::milliseconds) override { seconds_ += 0.1; }
  void deliver(std::size_t slot, const ReportEvent& report) override {
    if (!active_.contains(slot)) return;
    Attempt& active = active_.at(slot);
    if (active.kill_end > 0) {
      if (seconds_ < active.kill_end) return;
      active_.erase(slot);
      return report(LostRun{"its worker was lost: killed by SIGKILL"});
    }
    if (active.act == Act::kHang) return;
    if (active.act == Act::kWriteSlowly) {
      if (std::exchange(active.write_end, active.write_end > 0 ? active.write_end : seconds_ + 1000) == 0) {
        report(TrainedBatches{.count = 1});
        return report(RunPhase{std::string(kWritesFiles)});
      }
      if (seconds_ < active.write_end) return;
      active.act = Act::kComplete;
    }
    Attempt attempt = active;
    active_.erase(slot);
    if (attempt.act == Act::kFailToBegin) return report(UnwritableRun{"run0: cannot be prepared"});
    if (attempt.act == Act::kLoseRun)
      return report(TrainedRun{.record = {}, .failure = RunFailure::kTakenOver});
    report(RunPlan{.name = attempt.record.name, .epochs = 1});
    if (attempt.act == Act::kLoseProcess) return report(LostRun{"its worker was lost: killed by SIGSEGV"});
    if (attempt.act == Act::kFailWriting) return report(UnwritableRun{"checkpoint: cannot create"});
    const bool completes = attempt.act == Act::kComplete;
    attempt.record.status = completes ? RunStatus::kCompleted : RunStatus::kFailed;
    if (!completes) attempt.record.error = "not a number";
    report(TrainedRun{.record = attempt.record,
                      .failure = completes                      ? RunFailure::kNone
                                 : attempt.act == Act::kDiverge ? RunFailure::kDiverged
                                                                : RunFailure::kError});
  }

  double seconds_to_die = 0;  // from the signal to the end of a process
  std::vector<std::size_t> started, slots, killed;
  std::vector<int> thread_counts;
  std::map<std::size_t, int> later_threads, stop_requests;

 private:
  struct Attempt {
    std::size_t run = 0;
    Act act = Act::kComplete;
    RunRecord record;
    double kill_end = 0, write_end = 0;  // 0: none
  };

  Act next_act(std::size_t run) {
    std::vector<Act>& acts = script_[run];
    if (acts.empty()) return Act::kComplete;
    const Act act = acts.front();
    acts.erase(acts.begin());
    return act;
  }

  double& seconds_;
  std::map<std::size_t, std::vector<Act>> script_;
  std::map<std::size_t, Attempt> active_;
};

class RunSchedulerTest : public ::testing::Test {
 protected:
  RunSchedulerTest() {
    options_.clock = [this] { return seconds_; };
    options_.stop_requested = [] { return 0; };
    options_.check_directory = [] {};
  }

  // Schedules `count` runs and returns their records.
  std::vector<RunRecord> schedule(std::size_t count, ScriptedExecutor& executor) {
    configs_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      configs_.push_back(small_run(i, 0.5));
      configs_.back().name = "run" + std::to_string(i);
    }
    std::deque<ScheduledRun> runs;
    std::vector<RunRecord> records;
    for (std::size_t i = 0; i < count; ++i) {
      runs.emplace_back().run = i;
      runs.back().config = &configs_[i];
      RunNeeds& run = runs.back().needs;
      if (i < devices_.size()) run.device = parse_device(devices_[i]);
      const int count_of_devices = i < device_counts_.size() ? device_counts_[i] : 1;
      for (int d = 0; d < count_of_devices; ++d)
        run.devices.push_back({run.device.type, run.device.index + d});
      records.emplace_back().name = configs_[i].name;
    }
    Terminal terminal;
    terminal.write = [this](std::string_view text) { terminal_ += text; };
    SweepRecorder recorder({.directory = directory_.path(),
                            .name = "scripted",
                            .keys = {},
                            .clock = options_.clock,
                            .terminal = terminal},
                           configs_, std::move(records));
    RunQueue queue(runs, recorder);
    schedule_runs(queue, executor, options_, recorder);
    return recorder.records();
  }

  TemporaryDirectory directory_;
  std::vector<RunConfig> configs_;
  std::vector<std::string> devices_;  // the first one of each of the first runs; the others are on the CPU
  std::vector<int> device_counts_;    // of the first runs; the others have one
  std::string terminal_;
  double seconds_ = 1000;
  SchedulerOptions options_;
};

// "lose fail|" has the first run lose its process and then fail; the second one completes.
std::map<std::size_t, std::vector<Act>> script_of(const std::string& text) {
  const std::map<std::string, Act> acts = {{"fail", Act::kFail},         {"lose", Act::kLoseProcess},
                                           {"diverge", Act::kDiverge},   {"hang", Act::kHang},
                                           {"write", Act::kWriteSlowly}, {"leave", Act::kLoseRun}};
  std::map<std::size_t, std::vector<Act>> script;
  std::istringstream runs(text + "|");
  std::size_t count = 0;
  for (std::string run; std::getline(runs, run, '|'); ++count) {
    std::istringstream words(run);
    for (std::string word; words >> word;) script[count].push_back(acts.at(word));
    script[count];
  }
  return script;
}

struct Limits {
  int retry = 0, retry_lost = 0;
  double timeout = 0, stall = 60;
};

struct Scenario {
  const char* script;
  Limits limits;
  const char *ends, *started, *error;  // statuses; runs in their order; part of the first one's
};

TEST_F(RunSchedulerTest, TriesAgainAndEndsWhatItIsToldTo) {
  const Scenario scenarios[] = {
      {"fail lose|", {.retry = 2}, "completed completed", "0 1 0 0", ""},  // after the others
      {"fail fail fail", {.retry = 1}, "failed", "0 0", "not a number"},
      {"diverge", {.retry = 5}, "failed", "0", "not a number"},  // known by its failure, not by its error
      {"lose lose|fail", {.retry_lost = 2}, "completed failed", "0 1 0 0", ""},  // where others depend on it
      {"hang|",
       {.retry_lost = 2, .timeout = 5},
       "failed completed",
       "0 1",
       "timeout: it took longer than 5 s"},
      {"hang", {.stall = 2}, "failed", "0", "hanging: no sign of life for 10 s"},  // five times, if none came
      {"write", {.stall = 2}, "completed", "0", ""},   // a disk takes as long as it takes
      {"leave|", {}, "pending completed", "0 1", ""},  // to another process, before it has begun
  };
  for (const Scenario& scenario : scenarios) {
    SCOPED_TRACE(scenario.script);
    const Limits& limits = scenario.limits;
    options_.retry = limits.retry, options_.retry_lost = limits.retry_lost;
    options_.timeout = limits.timeout, options_.stall_seconds = limits.stall;
    ScriptedExecutor executor(seconds_, script_of(scenario.script));
    const std::vector<RunRecord> records = schedule(script_of(scenario.script).size(), executor);
    EXPECT_EQ(fmt::format("{}", fmt::join(statuses(records), " ")), scenario.ends);
    EXPECT_EQ(fmt::format("{}", fmt::join(executor.started, " ")), scenario.started);
    EXPECT_THAT(records[0].error.value_or(""), HasSubstr(scenario.error));
    EXPECT_EQ(records[0].name, "run0");
  }
  EXPECT_THAT(terminal_, HasSubstr("run0 failed and will be tried again (2 of 2)"));
}

TEST_F(RunSchedulerTest, StartsNothingMoreWhenAskedToStop) {
  options_.stop_requested = [] { return SIGTERM; };
  ScriptedExecutor executor(seconds_, {});
  EXPECT_THAT(statuses(schedule(2, executor)), ElementsAre("pending", "pending"));
  EXPECT_THAT(executor.started, SizeIs(0));
}

// Ctrl-C also goes to a worker that does not ignore it yet.
TEST_F(RunSchedulerTest, AWorkerThatEndsWithTheSweepsSignalWasInterrupted) {
  ScriptedExecutor executor(seconds_, script_of("lose"));
  options_.stop_requested = [this, begin = seconds_] { return seconds_ > begin ? SIGINT : 0; };
  EXPECT_THAT(statuses(schedule(1, executor)), ElementsAre("interrupted"));
}

TEST_F(RunSchedulerTest, StopsTheOtherRunsAtTheFirstFailureWithFailFast) {
  options_.fail_fast = true;
  options_.slots = 2;
  ScriptedExecutor executor(seconds_, {{0, {Act::kHang}}, {1, {Act::kFail}}});
  const std::vector<RunRecord> records = schedule(3, executor);
  EXPECT_THAT(statuses(records), ElementsAre("interrupted", "failed", "pending"));
  EXPECT_EQ(executor.stop_requests.at(0), kOtherRunFailed);
  EXPECT_THAT(executor.killed, ElementsAre(0)) << "it did not stop in time";
}

TEST_F(RunSchedulerTest, GoesOnWithOtherRunsWhileAProcessIsSlowToDie) {
  options_.slots = 2;
  options_.timeout = 5;
  ScriptedExecutor executor(seconds_, {{0, {Act::kHang}}});
  executor.seconds_to_die = 1000;
  const std::vector<RunRecord> records = schedule(3, executor);
  EXPECT_THAT(statuses(records), ElementsAre("failed", "completed", "completed"));
  EXPECT_THAT(records[0].error.value(), HasSubstr("timeout: it took longer than 5 s"));
  EXPECT_GT(seconds_, 2000) << "nobody writes to its files before it is gone";
}

TEST_F(RunSchedulerTest, DividesTheCoresAndHandsThemToTheLastRun) {
  options_.slots = 2;
  options_.cores = 5;
  options_.timeout = 3;
  ScriptedExecutor executor(seconds_, {{1, {Act::kHang}}});
  schedule(2, executor);
  EXPECT_THAT(executor.thread_counts, ElementsAre(3, 2));
  EXPECT_EQ(executor.later_threads.at(1), 5);
}

TEST_F(RunSchedulerTest, OnlyFailsTheRunWhoseDirectoryIsBeingRemoved) {
  const std::filesystem::path run = directory_.path() / "run0";
  std::filesystem::create_directories(run);
  const std::jthread removal([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // after its files
    std::filesystem::remove(run);
  });
  ScriptedExecutor executor(seconds_, {{0, {Act::kFailWriting}}});
  EXPECT_THAT(statuses(schedule(2, executor)), ElementsAre("failed", "completed"));
}

TEST_F(RunSchedulerTest, EndsTheSweepIfARunCannotWriteToItsDirectory) {
  std::filesystem::create_directories(directory_.path() / "run0");
  ScriptedExecutor executor(seconds_, {{0, {Act::kFailWriting}}});
  EXPECT_THROW(schedule(2, executor), IoError);
}

TEST_F(RunSchedulerTest, EndsTheSweepIfARunsDirectoryCannotBeMade) {
  ScriptedExecutor executor(seconds_, {{0, {Act::kFailToBegin}}});
  EXPECT_THROW(schedule(2, executor), IoError);
}

TEST_F(RunSchedulerTest, KeepsTheRunsOfAGpuInOneSlot) {
  options_.slots = 3;
  options_.one_run_per_device = true;
  devices_ = {"cpu", "cuda", "cpu", "cuda", "cuda", "cpu", "cuda:1", "cuda", "cuda:1"};
  ScriptedExecutor executor(seconds_, {});
  schedule(devices_.size(), executor);
  std::map<std::string, std::set<std::size_t>> slots;
  for (std::size_t i = 0; i < executor.started.size(); ++i)
    slots[devices_[executor.started[i]]].insert(executor.slots[i]);
  EXPECT_THAT(slots["cuda"], SizeIs(1));
  EXPECT_THAT(slots["cuda:1"], SizeIs(1));
  EXPECT_NE(slots["cuda"], slots["cuda:1"]);
}

TEST_F(RunSchedulerTest, StartsNoRunWhileAnotherHasOneOfItsGpus) {
  options_.slots = 3;
  options_.one_run_per_device = true;
  devices_ = {"cuda", "cuda:1", "cuda:2"};
  device_counts_ = {2, 1, 1};
  ScriptedExecutor executor(seconds_, {});
  schedule(3, executor);
  EXPECT_THAT(executor.started, ElementsAre(0, 2, 1)) << "the second run waits for cuda:1";
}

TEST_F(RunSchedulerTest, CountsTheCoresThatARunTakesForDevices) {
  options_.slots = options_.cores = 4;
  options_.one_run_per_device = true;
  device_counts_ = {3, 2, 1, 5};
  ScriptedExecutor executor(seconds_, {});
  schedule(4, executor);
  EXPECT_THAT(executor.started, ElementsAre(0, 2, 1, 3))
      << "the last one has more devices than there are cores";
  EXPECT_THAT(executor.thread_counts, ElementsAre(3, 1, 2, 5)) << "at least one for each device";
}

TEST_F(RunSchedulerTest, StartsRunsOnTheSameDeviceIfToldHowMany) {
  options_.slots = 2;
  devices_ = {"cuda", "cuda:1", "cuda"};
  device_counts_ = {2, 1, 1};
  ScriptedExecutor executor(seconds_, {});
  schedule(3, executor);
  EXPECT_THAT(executor.started, ElementsAre(0, 1, 2));
}

TEST_F(RunSchedulerTest, UsesEverySlotWhateverItWasUsedForBefore) {
  options_.slots = 2;
  devices_ = {"cuda", "cuda:1", "cpu", "cpu", "cuda", "cuda"};
  ScriptedExecutor executor(seconds_, {});
  schedule(devices_.size(), executor);
  EXPECT_THAT(executor.slots, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST_F(RunSchedulerTest, DoesNotCountTimeInWhichTheSweepItselfWasStopped) {
  options_.timeout = 5;
  options_.stop_requested = [this] {
    // As after Ctrl-Z: an hour has passed since the last look at the clock.
    if (seconds_ > 1002 && seconds_ < 2000) seconds_ += 3600;
    return 0;
  };
  ScriptedExecutor executor(seconds_, {{0, {Act::kHang}}});
  EXPECT_THAT(schedule(1, executor)[0].error.value(), HasSubstr("timeout"));
  EXPECT_GT(seconds_, 1000 + 3600 + 4) << "the rest of its time is left after the hour";
}

// Returns what deliver() throws, or "".
std::string problem_after(RunFailure failure, bool is_lost) {
  const auto fails = [failure](const WorkerTask&, const ReportEvent&, const TrainerOptions&) {
    return TrainedRun{.record = {}, .failure = failure};
  };
  InProcessExecutor executor(fails, {}, [&](const Device&) { return is_lost; });
  RunConfig config;
  config.name = "lr-1";
  ScheduledRun run;
  run.config = &config;
  run.needs.device = {DeviceType::kCuda, 1};
  executor.start(0, run, {}, 1);
  int ends = 0;
  const auto deliver = [&] {
    executor.deliver(0, [&](const RunEvent& event) { ends += std::holds_alternative<TrainedRun>(event); });
  };
  std::string problem;
  try {
    deliver();
  } catch (const DeviceError& error) {
    problem = error.what();
  }
  EXPECT_EQ(ends, 1) << "the run is recorded";
  return problem;
}

TEST(InProcessExecutor, EndsTheSweepIfItsProcessHasLostTheDevice) {
  EXPECT_THAT(problem_after(RunFailure::kDevice, true),
              StartsWith("cuda:1 failed in run \"lr-1\", and this process cannot use it any more"));
  EXPECT_EQ(problem_after(RunFailure::kDevice, false), "") << "such as out of memory";
  EXPECT_EQ(problem_after(RunFailure::kError, true), "");
}

// A search that goes on adds its earlier trials one by one.
TEST(SweepRecorder, KnowsTheBestAlsoOfRunsThatAreAdded) {
  TemporaryDirectory directory;
  SweepRecorder recorder({.directory = directory.path(),
                          .name = "sweep",
                          .keys = {},
                          .clock = [] { return 0.0; },
                          .terminal = {.write = [](std::string_view) {}}},
                         {}, {});
  RunRecord record;
  record.name = "run";
  record.status = RunStatus::kCompleted;
  record.epochs = {EpochRecord(1, {{"loss", 0.5}})};
  recorder.add_run(record);
  ASSERT_TRUE(recorder.progress().state().best);
  EXPECT_EQ(recorder.progress().state().best->name, "run");
}

}  // namespace sweep::run_scheduler_test
