// What `sweep run` and `sweep resume` end in.
#pragma once

#include "core/parallel/mpi_session.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

/// Trains the runs of `sweep` and prints their results, with a comparison of the devices if there are
/// several. Returns the exit code. Throws what run_sweep() throws. `session`: the processes that train
/// together with this one, which then trains in this process; nullptr: it has workers.
int train_sweep(const Sweep& sweep, const RunnerOptions& options, MpiSession* session);

}  // namespace sweep
