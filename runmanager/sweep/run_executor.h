// Where the runs of a sweep execute: the interface between the scheduler, which decides which run is next and
// what follows from its end, and the ways to train one. WorkerPool trains runs in worker processes,
// InProcessExecutor in the calling process.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "core/engine/device.h"
#include "runmanager/kinds/run_kind.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/run_event.h"

namespace sweep {

/// One run to be trained.
struct ScheduledRun {
  std::size_t run = 0;                // position in the sweep, from 0
  const RunConfig* config = nullptr;  // owned by the caller
  RunNeeds needs;
  int until_epoch = 0;                      // it pauses after this epoch, from 1; 0: it does not
  std::shared_ptr<RunLock> lock = nullptr;  // of a run of a sweep that several processes share
};

/// The one at `run`, a position in the sweep; null if it is not among `runs`, which are in the order of the
/// sweep.
inline ScheduledRun* find_run(std::deque<ScheduledRun>& runs, std::size_t run) {
  const auto found = std::ranges::lower_bound(runs, run, {}, &ScheduledRun::run);
  return found == runs.end() || found->run != run ? nullptr : &*found;
}

/// Executes up to one run per slot; slots are counted from 0. Events of a run are queued until deliver()
/// passes them on, by one thread and never from inside another call. Not thread-safe.
class RunExecutor {
 public:
  RunExecutor() = default;
  virtual ~RunExecutor() = default;
  RunExecutor(const RunExecutor&) = delete;
  RunExecutor& operator=(const RunExecutor&) = delete;

  /// Starts `run` in a slot that has none. `record`: the run's record so far, with its settings and
  /// provenance. `threads`: EngineOptions::threads. `run` must stay until the run has ended. Throws IoError
  /// if no process can be started.
  virtual void start(std::size_t slot, const ScheduledRun& run, const RunRecord& record, int threads) = 0;
  /// Changes the number of threads with the run's next epoch.
  virtual void set_threads(std::size_t slot, int threads) = 0;
  /// Asks the run to stop after its current batch; `signal` is the reason.
  virtual void request_stop(std::size_t slot, int signal) = 0;
  /// Ends the process of the slot's run. A LostRun follows when it is gone, unless the run has ended before.
  virtual void kill(std::size_t slot) = 0;

  /// Returns when a run has events to deliver, or after `timeout`.
  virtual void wait(std::chrono::milliseconds timeout) = 0;
  /// Passes the events of the slot's run to `report`, in order. Does not wait for more.
  virtual void deliver(std::size_t slot, const ReportEvent& report) = 0;
};

/// Trains runs in the calling process, one at a time: for users of the library without a worker program. A
/// run that crashes or hangs takes the sweep with it. Has one slot. deliver() trains the whole run, so
/// kill() and request_stop() have no effect: training asks TrainerOptions::stop_requested itself.
class InProcessExecutor final : public RunExecutor {
 public:
  /// `options`: `threads` are set here. `is_lost`: as sweep::is_lost().
  InProcessExecutor(KindWorker worker, TrainerOptions options,
                    std::function<bool(const Device&)> is_lost = sweep::is_lost);

  void start(std::size_t slot, const ScheduledRun& run, const RunRecord& record, int threads) override;
  void set_threads(std::size_t, int threads) override { threads_ = threads; }
  void request_stop(std::size_t, int) override {}
  void kill(std::size_t) override {}
  void wait(std::chrono::milliseconds timeout) override;
  /// Throws DeviceError after a run whose device this process cannot use any more: no other run could.
  void deliver(std::size_t slot, const ReportEvent& report) override;

 private:
  const KindWorker worker_;
  TrainerOptions options_;
  const std::function<bool(const Device&)> is_lost_;
  Device device_;                   // of the run
  std::optional<WorkerTask> task_;  // started, not yet trained
  int threads_ = 0;
};

}  // namespace sweep
