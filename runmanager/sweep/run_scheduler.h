// Trains the runs of a sweep in worker processes, several at once if wanted, whatever becomes of the workers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/sweep/shared_dataset.h"
#include "runmanager/sweep/sweep_book.h"
#include "runmanager/sweep/worker_process.h"
#include "runmanager/training/run_trainer.h"

namespace sweep {

struct SchedulerOptions {
  int jobs = 1;               // runs at once; 0: as many as the machine has cores, but one per GPU
  int threads = 0;            // CPU threads per run; 0: the cores, divided over the runs
  int cores = 1;              // to be divided
  int retry = 0;              // how often a failed run is tried again
  bool fail_fast = false;     // the first run that stays failed ends the sweep
  double timeout = 0;         // seconds that a run may take; 0: any
  double stall_seconds = 60;  // without a sign of life before a worker counts as hanging, or 10 of its steps
  double stop_seconds = 4;    // that a run has to stop in, when asked
  WorkerCommand worker;
  std::function<double()> clock;
  std::function<int()> stop_requested;
  std::function<void()> check_directory;  // throws IoError if the sweep's directory is gone
};

/// One run to be trained; `dataset` is a position in the data sets.
struct ScheduledRun {
  std::size_t run = 0;  // in the sweep, from 0
  PreparedRun prepared;
  std::size_t dataset = 0;
};

/// Returns when every run has ended, or the sweep was asked to stop and all have. Which run trained where and
/// beside which others changes no bit of its results. A run whose own directory is removed meanwhile fails.
/// Throws IoError when files cannot be written otherwise or no worker can be started; the workers are gone
/// then.
void train_in_workers(const std::vector<ScheduledRun>& runs, const std::vector<SharedDataset>& datasets,
                      const SchedulerOptions& options, SweepBook& book);

/// Runs at once for --jobs auto: one per core, and no more than there are runs.
int automatic_jobs(std::size_t runs, int cores);

}  // namespace sweep
