// The options of `sweep run`, and the part of them that `sweep plan` has as well.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tools/commands/launch.h"

namespace CLI {
class App;
}

namespace sweep {

/// A sweep file, and what the command line changes in it: the arguments of load_sweep().
struct SweepArguments {
  std::filesystem::path file;
  std::vector<std::string> overrides;  // "lr=0.1,0.01"
  LoadOptions load;
  std::vector<std::string> program;  // instead of a file: a person's own program and its arguments
  std::string name;                  // of the sweep; empty: the file's, or that of the program
};

/// The sweep that the arguments ask for. Throws as load_sweep().
Sweep load_sweep(const SweepArguments& arguments);

struct RunOptions {
  SweepArguments sweep;
  RunnerOptions runner;
  LauncherOptions launcher;
};

/// Adds options to `app` that are parsed into `arguments`, which has to live as long as `app`.
void add_sweep_arguments(CLI::App& app, SweepArguments& arguments);
/// The KEY=VALUE words alone.
void add_overrides(CLI::App& app, std::vector<std::string>& overrides);
/// --jobs and --threads.
void add_jobs_options(CLI::App& app, int& jobs, int& threads);
/// Options of how runs are trained, which `sweep run` and `sweep resume` have.
void add_training_options(CLI::App& app, RunnerOptions& runner);
/// All options of `sweep run`.
void add_run_options(CLI::App& app, RunOptions& options);

}  // namespace sweep
