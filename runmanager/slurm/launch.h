// Starts or resumes a sweep on a Slurm cluster, and follows it there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/inspect/watch.h"
#include "runmanager/slurm/slurm_client.h"
#include "runmanager/slurm/submission.h"
#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

struct LaunchedSweep {
  std::filesystem::path directory;  // <logdir>/<name>
  std::size_t unfinished = 0;       // runs that are not done
  Submission submission;
};

/// Writes the sweep's directory as run_sweep() does before the first run, and submits tasks for the runs that
/// are not done and have none. `program`: of the tasks, unless the sweep file names one. If tasks of the
/// sweep live already, leaves its directory unchanged. Throws ConfigError for a sweep or an option that is
/// not possible on a cluster, or if its tasks live and have other runs; also throws as run_sweep() and
/// submit_runs(). Checks all that Slurm can refuse beforehand before it writes anything.
LaunchedSweep launch_sweep(const Sweep& sweep, const RunnerOptions& options,
                           const std::filesystem::path& program, SweepEnvironment environment,
                           SlurmClient& client);

/// Throws ConfigError if tasks of the sweep in `directory` live, so that it must not be trained here as well,
/// and SlurmUnreachable if Slurm does not answer. Does nothing for a sweep that was never submitted.
void check_no_live_tasks(const std::filesystem::path& directory, SlurmClient& client);

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
