// What `sweep run` and `sweep resume` end in: runs are trained here or on a cluster. This program starts its
// workers as itself, with "worker" as the first word.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/sweep/sweep_runner.h"

namespace CLI {
class App;
}

namespace sweep {

class MpiSession;

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

struct LauncherOptions {
  std::string launcher;            // "local" or "slurm"; empty: as the sweep was started, or local
  std::vector<std::string> slurm;  // "KEY=VALUE"
  bool wait = false;
};

/// Adds --launcher, --slurm and --wait to `app`; `options` has to live as long.
void add_launcher_options(CLI::App& app, LauncherOptions& options);

/// Trains the runs of `sweep` here or on a cluster, as the options say, and prints the results. Returns the
/// exit code. `session`: as for train_sweep(), which is called where the runs are trained here. Throws what
/// train_sweep() and launch_sweep() throw.
int train_or_launch(const Sweep& sweep, const RunnerOptions& runner, const LauncherOptions& options,
                    MpiSession* session);

/// Downloads the known data sets of `sweep` that none of dataset_places() has into the user's cache, and says
/// so on standard error. Returns the exit code: 0, or 128 + signal. Throws what fetch_dataset() throws.
int get_missing_datasets(const Sweep& sweep);

}  // namespace sweep
