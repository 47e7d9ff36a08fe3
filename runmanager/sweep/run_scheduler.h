// Decides which run of a sweep is trained next and what follows from its end: retries, fail-fast, timeouts,
// stop.
#pragma once

#include <functional>

#include "runmanager/kinds/gpu_pool.h"
#include "runmanager/sweep/run_executor.h"
#include "runmanager/sweep/run_queue.h"
#include "runmanager/sweep/sweep_recorder.h"

namespace sweep {

struct SchedulerOptions {
  std::size_t slots = 1;            // runs at once
  bool one_run_per_device = false;  // of a GPU, or of a core that a run takes for one; two would take turns
  GpuPool gpus = {};                // see RunNeeds::takes_gpus
  int threads = 0;                  // CPU threads per run; 0: `cores` divided over the runs
  int cores = 1;
  int retry = 0;                  // further attempts for a run that fails, unless it diverged
  int retry_lost = 0;             // the same for one whose process or device was lost, if that is more
  bool fail_fast = false;         // the first run that stays failed ends the sweep
  double timeout = 0;             // seconds that one run may take; 0: no limit
  double stall_seconds = 60;      // without an event after which a run hangs; see RunScheduler in the source
  double stop_seconds = 4;        // in which a run must stop when asked to
  std::function<double()> clock;  // seconds, monotonic
  std::function<int()> stop_requested;  // the signal that asks to stop, or 0
  std::function<int()> others_here;     // other processes that train the sweep on this machine; may be empty
  std::function<void()> check_directory;  // throws IoError if the sweep's directory is gone
};

/// Trains the runs of `queue` in `executor`, in their order, and keeps `recorder` up to date. Returns when
/// every run has ended, or when the sweep was asked to stop and all runs have stopped. The slot of a run, and
/// the runs in the other slots, change no bit of its results. A run whose own directory is removed
/// meanwhile fails. Throws IoError when files cannot be written otherwise or no worker can be started; the
/// caller then destroys the executor, which ends the other runs. Returns whether it was asked to stop.
bool schedule_runs(RunQueue& queue, RunExecutor& executor, const SchedulerOptions& options,
                   SweepRecorder& recorder);

}  // namespace sweep
