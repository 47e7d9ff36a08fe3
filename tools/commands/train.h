// What `sweep run` and `sweep resume` end in, and how this program starts its workers: itself, with "worker"
// as the first word.
#pragma once

#include "core/parallel/mpi_session.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweep/sweep_runner.h"

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

/// Trains the runs of `sweep` and prints their results, with a comparison of the devices if there are
/// several. Returns the exit code. Throws what run_sweep() throws. `session`: the processes that train
/// together with this one, which then trains in this process; nullptr: it has workers.
int train_sweep(const Sweep& sweep, const RunnerOptions& options, MpiSession* session);

}  // namespace sweep
