// Follows a sweep on a cluster until nothing of it runs or waits any more.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/slurm/slurm_client.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

struct FollowOptions {
  Terminal terminal;   // where it is shown, or else lines are written as runs end
  bool quiet = false;  // nothing is shown
  std::function<bool()> stop_requested = [] { return false; };
  std::function<void()> wait;  // a second or so
};

struct FollowedSweep {
  std::vector<RunRecord> runs;  // in the order of the sweep
  std::size_t unfinished =
      0;  // runs that no task is left for, or that were not done when it was asked to stop
};

/// Shows how many runs of the sweep in `directory` have ended, which ones are trained, and what Slurm says of
/// the tasks, which is asked for once a minute. Returns when all runs have ended, or Slurm knows of no task
/// that runs or waits, or when it is asked to stop. A Slurm that does not answer is waited for; tasks that it
/// holds because a node could not start them are let go. Throws DataError if files of the sweep cannot be
/// read.
FollowedSweep follow_sweep(const Sweep& sweep, const std::filesystem::path& directory, SlurmClient& client,
                           const FollowOptions& options);

}  // namespace sweep
