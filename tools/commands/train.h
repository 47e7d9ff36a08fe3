// What `sweep run` and `sweep resume` end in.
#pragma once

#include "runmanager/config/run_config.h"
#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

/// Trains the runs of `sweep` and prints their results, with a comparison of the devices if there are
/// several. Returns the exit code. Throws what run_sweep() throws.
int train_sweep(const Sweep& sweep, const RunnerOptions& options);

}  // namespace sweep
