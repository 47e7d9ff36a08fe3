// `sweep resume DIR`: goes on with a sweep from what it has left, without its sweep file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "core/base/error.h"
#include "runmanager/slurm/job_file.h"
#include "runmanager/slurm/slurm_client.h"
#include "runmanager/slurm/task_end.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"
#include "tools/commands/train.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct ResumeOptions {
  fs::path directory;
  std::vector<std::string> overrides;
  RunnerOptions runner;
  LauncherOptions launcher;
  std::string list;  // of a task on a cluster: where the runs are that it trains; empty: all
};

// Without a slash at the end, and with a name: "." has none.
fs::path named_directory(fs::path directory) {
  if (directory.filename().empty()) directory = directory.parent_path();
  const bool has_name =
      !directory.filename().empty() && directory.filename() != "." && directory.filename() != "..";
  return has_name ? directory : fs::weakly_canonical(directory);
}

// A task of a cluster trains the runs that it was submitted for.
int train_as_task(const Sweep& sweep, ResumeOptions& options, const fs::path& directory,
                  MpiSession* session) {
  if (!options.list.empty()) {
    const std::vector<std::string> runs = runs_of_this_task(directory, options.list);
    options.runner.takes = [names = std::set<std::string>(runs.begin(), runs.end())](const RunConfig& run) {
      return names.contains(run.name);
    };
  }
  const int code = train_sweep(sweep, options.runner, session);
  SlurmClient client;
  return end_slurm_task(code, directory, options.runner.fail_fast, client);
}

int resume(ResumeOptions& options, const std::vector<std::string>& typed, MpiSession* session) {
  const fs::path directory = named_directory(options.directory), file = directory / "sweep.json";
  std::error_code error;
  if (!fs::exists(file, error)) {
    throw DataError(fmt::format("{}: {}; want the directory of a sweep, with sweep.json in it",
                                options.directory.string(),
                                fs::exists(directory, error) ? "has no sweep.json" : "is not there"));
  }
  // The directory may be called otherwise than the sweep: --fresh makes NAME-2.
  std::vector<std::string> overrides = options.overrides;
  overrides.push_back("name=" + directory.filename().string());
  LoadOptions load;
  load.slurm = options.launcher.slurm;
  const Sweep sweep = load_sweep(file, overrides, load);
  options.runner.logdir = directory.has_parent_path() ? directory.parent_path() : ".";
  options.runner.command = typed;
  if (is_slurm_task()) return train_as_task(sweep, options, directory, session);
  if (options.launcher.launcher.empty() && has_slurm_jobs(directory)) options.launcher.launcher = "slurm";
  return train_or_launch(sweep, options.runner, options.launcher, session);
}

}  // namespace

Command resume_command(MpiSession* session) {
  return {.name = "resume",
          .description = "go on with the sweep in a directory, without its sweep file",
          .missing_argument = "a directory is needed: sweep resume runs/NAME [options]",
          .add_to = [session](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<ResumeOptions>();
            app.add_option("directory", options->directory, "runs/NAME")->type_name("DIR")->required();
            add_overrides(app, options->overrides);
            add_training_options(app, options->runner);
            add_launcher_options(app, options->launcher);
            // For the scripts of tasks: see read_task_lists().
            app.add_option("--list", options->list)->group("");
            return [options, session](const std::vector<std::string>& typed) {
              return resume(*options, typed, session);
            };
          }};
}

}  // namespace sweep
