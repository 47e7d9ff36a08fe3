// The launchers of `sweep run` and `sweep resume`: where the runs are trained.
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

}  // namespace sweep
