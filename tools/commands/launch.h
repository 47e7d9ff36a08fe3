// What trains the runs of `sweep run` and `sweep resume`: workers, which this program starts as itself with
// "worker" as the first word, or the tasks of a cluster.
#pragma once

#include "runmanager/config/run_config.h"
#include "runmanager/sweep/sweep_runner.h"
#include "tools/commands/run_options.h"

namespace sweep {

/// The first word of a worker's command line. Not one of the commands, since no user types it.
inline constexpr const char* kWorkerWord = "worker";

/// The environment of a sweep whose runs are trained in workers. /proc/self/exe starts the same program even
/// if its file was replaced since.
inline SweepEnvironment environment_with_workers() {
  SweepEnvironment environment;
  environment.worker_command = {"/proc/self/exe", kWorkerWord};
  return environment;
}

/// Submits the runs of `sweep` to a cluster and, if the options say so, waits for them and prints the
/// results. Returns the exit code. Throws what launch_sweep() throws.
int launch(const Sweep& sweep, const RunOptions& options);

/// Downloads the known data sets of `sweep` that none of dataset_places() has into the user's cache, and says
/// so on standard error. Returns the exit code: 0, or 128 + signal. Throws what fetch_dataset() throws.
int get_missing_datasets(const Sweep& sweep);

}  // namespace sweep
