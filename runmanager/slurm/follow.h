// Follows a sweep on a cluster until none of its tasks runs or waits.
#pragma once

#include <filesystem>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/inspect/watch.h"
#include "runmanager/records/results.h"
#include "runmanager/slurm/slurm_client.h"

namespace sweep {

struct FollowedSweep {
  std::vector<RunRecord> runs;  // in the order of the sweep
  std::size_t unfinished = 0;   // those that no task is left for, or not done when it was asked to stop
};

/// Shows how many runs of the sweep in `directory` have ended, which ones are trained, and the state of the
/// tasks; asks Slurm once a minute. Returns when all runs have ended, when Slurm knows no task that runs or
/// waits, or when it is asked to stop. If Slurm does not answer, waits for it. Releases tasks that Slurm
/// holds because a node could not start them. Throws DataError if files of the sweep cannot be read.
/// `options`: what is asked of Slurm is set here.
FollowedSweep follow_sweep(const Sweep& sweep, const std::filesystem::path& directory, SlurmClient& client,
                           WatchOptions options);

}  // namespace sweep
