#include "runmanager/sweep/run_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/provenance.h"
#include "runmanager/training/log_file.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

// Bounds how late a signal or a deadline is noticed while no run has events.
constexpr std::chrono::milliseconds kWait{100};
// In which a directory that somebody removes is gone, from the first of its files on.
constexpr std::chrono::seconds kRemoval{3};
// A run hangs when it is silent for longer than SchedulerOptions::stall_seconds and this many times its usual
// interval between events, so that runs with slow batches are left alone.
constexpr double kIntervalsBeforeStall = 10;
constexpr std::size_t kIntervalsKept = 100;
// Before its first batch a run may compile kernels or measure them.
constexpr double kStallFactorBeforeFirstBatch = 5;
std::string last_epoch_text(const RunRecord& record) {
  return record.epochs.empty() ? "before its first epoch was finished"
                               : fmt::format("after epoch {}", record.epochs.back().epoch);
}

bool is_on_gpus(const RunNeeds& run) { return run.device.type != DeviceType::kCpu; }

// One thread runs everything here. The loop starts runs in free slots, waits for events, passes them on to
// the recorder and the progress display, and ends runs that have passed a deadline.
class RunScheduler {
 public:
  RunScheduler(RunQueue& queue, RunExecutor& executor, const SchedulerOptions& options,
               SweepRecorder& recorder)
      : options_(options), queue_(queue), executor_(executor), recorder_(recorder), gpus_(options.gpus) {
    for (std::size_t i = 0; i < options.slots; ++i) slots_.emplace_back(i);
  }

  // Returns whether it was stopped before all runs had ended.
  bool run() {
    last_wait_end_ = options_.clock();
    for (;;) {
      if (stop_signal_ == 0) stop_all(reason_to_stop());
      if (stop_signal_ == 0) start_runs();
      if (active_runs() == 0 && (stop_signal_ != 0 || !queue_.may_have_more())) break;
      recorder_.save_if_due([this] { queue_.collect(); });
      wait_for_events();
      for (Slot& slot : slots_) {
        if (slot.is_active())
          executor_.deliver(slot.index, [this, &slot](const RunEvent& event) { take(slot, event); });
      }
      check_deadlines();
    }
    return stop_signal_ != 0;
  }

 private:
  struct Attempt {
    const ScheduledRun* run = nullptr;  // nullptr: none
    int retries = 0;                    // attempts before this one
  };

  // A slot of the executor with the run in it.
  struct Slot {
    explicit Slot(std::size_t i) : index(i) {}

    bool is_active() const { return attempt.run != nullptr; }
    const ScheduledRun& run() const { return *attempt.run; }

    const std::size_t index;
    Attempt attempt;
    double begin = 0;              // of the attempt
    double last_event = 0;         // of the run
    std::deque<double> intervals;  // seconds from the event before to each of the last batches
    int threads = 0;
    bool stop_requested = false;
    bool has_begun = false;             // and so made the run's directory
    bool writes_files = false;          // A disk may take any time, so the run is not said to hang.
    std::string kill_reason = "";       // why its process was killed; "": it was not
    std::vector<std::string> own_gpus;  // of gpus_, while it is active
    std::vector<Device> gpus;  // that it used last: its worker keeps the contexts, which cost GPU memory
  };

  std::size_t active_runs() const {
    return static_cast<std::size_t>(
        std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.is_active(); }));
  }

  // The slot's part of the cores while `active` runs are trained. The first slots get the remainder.
  int threads_of(const Slot& slot, std::size_t active) const {
    if (options_.threads > 0) return options_.threads;
    const auto divisor = static_cast<int>(active);
    const bool gets_one_more = static_cast<int>(slot.index) < options_.cores % divisor;
    const RunNeeds& run = slot.run().needs;
    const int least = is_on_gpus(run) ? 1 : static_cast<int>(run.devices.size());
    return std::max(least, options_.cores / divisor + (gets_one_more ? 1 : 0));
  }

  // A GPU is a run's own. On the CPU, devices are cores, of which any will do.
  bool devices_are_free(const RunNeeds& run) const {
    if (!options_.one_run_per_device) return true;
    std::size_t cores = 0;
    for (const Slot& slot : slots_) {
      if (!slot.is_active()) continue;
      const RunNeeds& other = slot.run().needs;
      if (is_on_gpus(run) && std::ranges::find_first_of(run.devices, other.devices) != run.devices.end())
        return false;
      if (!is_on_gpus(other)) cores += other.devices.size();
    }
    return is_on_gpus(run) || cores == 0 ||
           cores + run.devices.size() <= static_cast<std::size_t>(options_.cores);
  }

  void start_runs() {
    if (std::exchange(has_news_, false) || queue_.may_have_more()) {
      for (const ScheduledRun* run : queue_.take_ready()) waiting_.push_back({.run = run});
    }
    for (std::size_t free = slots_.size() - active_runs(); free > 0 && !waiting_.empty(); --free) {
      if (!queue_.may_begin()) give_back_waiting();
      const auto next = std::find_if(waiting_.begin(), waiting_.end(), [this](const Attempt& attempt) {
        const RunNeeds& run = attempt.run->needs;
        return run.takes_gpus ? gpus_.has_free() : devices_are_free(run);
      });
      if (next == waiting_.end()) break;
      const Attempt attempt = *next;
      waiting_.erase(next);
      Slot& slot = free_slot_for(attempt.run->needs);
      if (attempt.run->needs.takes_gpus) slot.own_gpus = gpus_.take();
      start(slot, attempt);
    }
    hand_out_idle_cores();
  }

  // Another attempt at a run that has begun is part of it.
  void give_back_waiting() {
    std::erase_if(waiting_, [this](const Attempt& attempt) {
      if (attempt.retries == 0) queue_.end(attempt.run->run);
      return attempt.retries == 0;
    });
  }

  // A run on GPUs goes where the last one on the same was, if it can, so that few workers make contexts.
  // Others stay away from there.
  Slot& free_slot_for(const RunNeeds& run) {
    const auto unfitness = [&run](const Slot& slot) {
      if (is_on_gpus(run) && slot.gpus == run.devices) return 0;
      return slot.gpus.empty() ? 1 : 2;
    };
    Slot* best = nullptr;
    for (Slot& slot : slots_) {
      if (!slot.is_active() && (best == nullptr || unfitness(slot) < unfitness(*best))) best = &slot;
    }
    return *best;
  }

  void start(Slot& slot, const Attempt& attempt) {
    // A run makes its directory, and with it the sweep's, without the files that were there.
    options_.check_directory();
    const std::size_t active = std::min(slots_.size(), active_runs() + waiting_.size() + 1);
    slot.attempt = attempt;
    slot.threads = threads_of(slot, active);
    slot.begin = slot.last_event = options_.clock();
    slot.intervals.clear();
    slot.stop_requested = slot.has_begun = slot.writes_files = false;
    slot.kill_reason.clear();
    const RunNeeds& needs = attempt.run->needs;
    if (is_on_gpus(needs)) slot.gpus = needs.devices;
    const std::size_t run = slot.run().run;
    RunRecord record = recorder_.record(run);
    record.status = RunStatus::kRunning;
    record.jobs = static_cast<int>(active) + (options_.others_here ? options_.others_here() : 0);
    record.epochs.clear();
    record.untrained.reset();
    record.error.reset();
    if (!slot.own_gpus.empty()) record.provenance[kGpusKey] = slot.own_gpus;
    recorder_.begin_run(run, std::move(record));
    executor_.start(slot.index, slot.run(), recorder_.record(run), slot.threads);
  }

  // When no run waits any more, the remaining ones get the cores of those that have ended.
  void hand_out_idle_cores() {
    if (!waiting_.empty()) return;
    const std::size_t active = active_runs();
    for (Slot& slot : slots_) {
      if (!slot.is_active()) continue;
      const int threads = threads_of(slot, active);
      if (threads <= slot.threads) continue;
      slot.threads = threads;
      executor_.set_threads(slot.index, threads);
    }
  }

  void wait_for_events() {
    executor_.wait(kWait);
    const double now = options_.clock();
    // After Ctrl-Z or a suspend of the machine, the clock has gone on while neither this process nor the
    // workers did anything. That time must not count against the runs.
    const double lost = now - last_wait_end_ - std::chrono::duration<double>(kWait).count();
    if (lost > 1) {
      for (Slot& slot : slots_) {
        slot.begin = std::min(now, slot.begin + lost);
        slot.last_event = std::min(now, slot.last_event + lost);
      }
    }
    last_wait_end_ = now;
  }

  void take(Slot& slot, const RunEvent& event) {
    if (const auto* trained = std::get_if<TrainedRun>(&event)) return end_run(slot, *trained);
    if (const auto* lost = std::get_if<LostRun>(&event)) return lose_run(slot, lost->reason);
    if (const auto* run = std::get_if<UnwritableRun>(&event)) return fail_writing(slot, *run);
    const double now = options_.clock();
    if (const auto* batches = std::get_if<TrainedBatches>(&event); batches != nullptr && batches->count > 0) {
      if (slot.intervals.size() == kIntervalsKept) slot.intervals.pop_front();
      slot.intervals.push_back(now - slot.last_event);
    }
    slot.last_event = now;
    slot.has_begun = true;
    const auto* const phase = std::get_if<RunPhase>(&event);
    slot.writes_files = phase != nullptr && phase->name == kWritesFiles;
    recorder_.take(slot.run().run, event);
  }

  void end_run(Slot& slot, TrainedRun trained) {
    const RunFailure failure = trained.failure;
    if (failure != RunFailure::kTakenOver) recorder_.take_end(slot.run().run, std::move(trained));
    end_attempt(slot, failure);
  }

  // Records the end of a run that could not do so itself.
  void lose_run(Slot& slot, const std::string& reason) {
    const ScheduledRun& run = slot.run();
    if (!queue_.owns(run.run)) return end_attempt(slot, RunFailure::kTakenOver);
    // Ctrl-C also reaches a worker that has just begun and does not ignore it yet.
    if (stop_signal_ == 0) stop_all(options_.stop_requested());
    const bool was_killed = !slot.kill_reason.empty();
    RunRecord record = recorder_.record(run.run);
    record.status = slot.stop_requested ? RunStatus::kInterrupted : RunStatus::kFailed;
    record.error = fmt::format("{} {}{}", was_killed ? slot.kill_reason : reason, last_epoch_text(record),
                               end_of_log(recorder_.directory() / record.name));
    record.run_seconds = recorder_.earlier_seconds(run.run) + options_.clock() - slot.begin;
    recorder_.record_end(*run.config, std::move(record));
    end_attempt(slot, was_killed ? RunFailure::kError : RunFailure::kLost);
  }

  // lose_run() follows once the process is gone, which a disk that hangs may delay.
  void kill_run(Slot& slot, std::string reason) {
    slot.kill_reason = std::move(reason);
    executor_.kill(slot.index);
  }

  // A full disk ends the sweep, because no other run could go on either. If somebody has removed the
  // directory of this run or its events, only this run fails.
  void fail_writing(Slot& slot, const UnwritableRun& run) {
    const bool is_gone = only_run_directory_is_gone(slot);
    if (!is_gone && !run.only_its_directory) throw IoError(run.error);
    slot.kill_reason =
        is_gone ? fmt::format("its directory was removed while it was trained ({})", run.error)
                : fmt::format(
                      "its directory cannot hold its events ({}); leave to the sweep the files there "
                      "that the program has not made; it ended",
                      run.error);
    lose_run(slot, "");
  }

  // Removing a directory removes its files first: writing may fail a moment before the directory is gone.
  bool only_run_directory_is_gone(const Slot& slot) const {
    const std::filesystem::path run = recorder_.directory() / slot.run().config->name;
    const auto end = std::chrono::steady_clock::now() + kRemoval;
    std::error_code error;
    while (std::filesystem::exists(run, error)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(kWait / 10);
    }
    if (error) return false;
    options_.check_directory();
    return slot.has_begun;
  }

  // The run of the slot has its record for this attempt. Decides what follows: another attempt, or the end.
  void end_attempt(Slot& slot, RunFailure failure) {
    Attempt attempt = std::exchange(slot.attempt, {});
    gpus_.give_back(std::exchange(slot.own_gpus, {}));
    const std::size_t run = attempt.run->run;
    const RunRecord& record = recorder_.record(run);
    if (failure == RunFailure::kTakenOver) return leave_run(run);
    // The same bits would diverge again.
    const bool can_retry = record.status == RunStatus::kFailed && failure != RunFailure::kDiverged;
    const bool was_lost = failure == RunFailure::kLost || failure == RunFailure::kDevice;
    const int retries = was_lost ? std::max(options_.retry, options_.retry_lost) : options_.retry;
    if (can_retry && stop_signal_ == 0 && attempt.retries < retries) {
      ++attempt.retries;
      waiting_.push_back(attempt);
      recorder_.progress().message(fmt::format("{} failed and will be tried again ({} of {}): {}",
                                               record.name, attempt.retries, retries,
                                               record.error.value_or("")));
      return;
    }
    const int until = attempt.run->until_epoch;
    const bool has_paused = until > 0 && record.status == RunStatus::kInterrupted &&
                            record.epochs.size() >= static_cast<std::size_t>(until);
    if (!queue_.owns(run)) return leave_run(run);
    has_paused ? recorder_.pause_run(run) : recorder_.end_run(run);
    queue_.end(run);
    has_news_ = true;
  }

  // Another process has taken the run over.
  void leave_run(std::size_t run) {
    recorder_.leave_run(run);
    queue_.end(run);
    has_news_ = true;
  }

  // 0: there is none. A run may also have failed without an attempt.
  int reason_to_stop() const {
    const int signal = options_.stop_requested();
    return signal == 0 && options_.fail_fast && recorder_.has_failed_run() ? kOtherRunFailed : signal;
  }

  void stop_all(int signal) {
    if (signal == 0 || stop_signal_ != 0) return;
    stop_signal_ = signal;
    stop_begin_ = options_.clock();
    for (Slot& slot : slots_) {
      if (!slot.is_active()) continue;
      slot.stop_requested = true;
      executor_.request_stop(slot.index, signal);
    }
  }

  // Seconds without an event after which a run hangs.
  double stall_limit(const Slot& slot) const {
    if (slot.intervals.empty()) return kStallFactorBeforeFirstBatch * options_.stall_seconds;
    std::vector<double> intervals(slot.intervals.begin(), slot.intervals.end());
    const auto median = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
    std::nth_element(intervals.begin(), median, intervals.end());
    return std::max(options_.stall_seconds, kIntervalsBeforeStall * *median);
  }

  void check_deadlines() {
    const double now = options_.clock();
    for (Slot& slot : slots_) {
      if (!slot.is_active() || !slot.kill_reason.empty()) continue;
      const double silent = now - slot.last_event;
      if (stop_signal_ != 0) {
        if (now - stop_begin_ >= options_.stop_seconds)
          kill_run(slot, fmt::format("stopped by {}, to which its worker did not answer,",
                                     signal_name(stop_signal_)));
      } else if (options_.timeout > 0 && now - slot.begin > options_.timeout) {
        kill_run(slot, fmt::format("timeout: it took longer than {:g} s and was ended", options_.timeout));
      } else if (!slot.writes_files && silent > options_.stall_seconds && silent > stall_limit(slot)) {
        kill_run(slot, fmt::format("hanging: no sign of life for {:.0f} s; its worker was ended", silent));
      }
    }
  }

  const SchedulerOptions& options_;
  RunQueue& queue_;
  RunExecutor& executor_;
  SweepRecorder& recorder_;
  GpuPool gpus_;
  std::deque<Attempt> waiting_;  // first attempts in the order of the sweep, then retries
  std::deque<Slot> slots_;       // a deque, because a Slot cannot be moved
  bool has_news_ = true;         // for the queue
  int stop_signal_ = 0;          // why all runs are to stop; 0: they are not
  double stop_begin_ = 0;
  double last_wait_end_ = 0;
};

}  // namespace

bool schedule_runs(RunQueue& queue, RunExecutor& executor, const SchedulerOptions& options,
                   SweepRecorder& recorder) {
  return RunScheduler(queue, executor, options, recorder).run();
}

}  // namespace sweep
