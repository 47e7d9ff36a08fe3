// The options of `sweep run` and `sweep resume`, the part of them that other commands have as well, and what
// several of these commands do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/terminal/table.h"

namespace CLI {
class App;
}

namespace sweep {

/// A sweep, and what the command line changes in it.
struct SweepArguments {
  std::filesystem::path file;          // a sweep file, or the directory that a sweep has left
  std::vector<std::string> overrides;  // "lr=0.1,0.01"
  LoadOptions load;
  std::vector<std::string> program;  // instead of a file: a person's own program and its arguments
  std::string name;                  // of the sweep; empty: the file's, the directory's or the program's
  std::filesystem::path logdir;      // empty: see logdir_of()
};

/// Whether the arguments name the directory of a sweep, not a file.
bool has_directory(const SweepArguments& arguments);
/// Throws DataError unless they do, and a sweep is in it.
void check_is_directory(const SweepArguments& arguments);
/// The sweep that the arguments ask for; `fresh`: whatever earlier starts have left of it. Throws as
/// load_sweep(), and DataError for a directory without a sweep.
Sweep load_sweep(const SweepArguments& arguments, bool fresh = false);
/// The folder of the sweep's directory: --logdir, or that of the directory that was named, or "runs".
std::filesystem::path logdir_of(const SweepArguments& arguments);

inline constexpr const char *kLocal = "local", *kSlurm = "slurm";

struct RunOptions {
  SweepArguments sweep;
  RunnerOptions runner;
  std::string launcher;  // kLocal or kSlurm; empty: as the sweep was started, or here
  bool wait = false;     // shows the runs that a cluster trains until all have ended
  bool yes = false;      // downloads known data sets that are missing
  bool dry_run = false;  // prints the plan instead
  std::string list;      // of a task on a cluster: where the runs are that it trains; empty: all
};

struct PlanOptions {
  SweepArguments sweep;
  RunnerOptions runner;
  bool pilot = false;       // trains a few batches of each kind of run to predict the time
  bool is_dry_run = false;  // of the sweep's own command line, whose jobs and threads count later
  TableFormat format = TableFormat::kText;
};

/// Adds options to `app` that are parsed into `arguments`, which has to live as long as `app`.
void add_sweep_arguments(CLI::App& app, SweepArguments& arguments);
/// --logdir.
void add_logdir_option(CLI::App& app, SweepArguments& arguments);
/// --jobs and --threads.
void add_jobs_options(CLI::App& app, int& jobs, int& threads);
/// All options of `sweep run` and `sweep resume`.
void add_run_options(CLI::App& app, RunOptions& options);

/// Prints every run with what becomes of it and what it takes, for `sweep plan` and `sweep run --dry-run`.
/// Returns an exit code. Throws ConfigError and DataError as the sweep itself would, and IoError.
int print_plan(const PlanOptions& options);

/// Downloads the known data sets of `sweep` that none of dataset_places() has into the user's cache, and says
/// so on standard error. Returns the exit code: 0, or 128 + signal. Throws what fetch_dataset() throws.
int get_missing_datasets(const Sweep& sweep);

/// The first word of a worker's command line. Not one of the commands, since no user types it.
inline constexpr const char* kWorkerWord = "worker";

/// The environment of a sweep whose runs are trained in workers. /proc/self/exe starts the same program even
/// if its file was replaced since.
inline SweepEnvironment environment_with_workers() {
  SweepEnvironment environment;
  environment.worker_command = {"/proc/self/exe", kWorkerWord};
  return environment;
}

}  // namespace sweep
