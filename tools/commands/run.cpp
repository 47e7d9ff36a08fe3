// `sweep SWEEP.json`, or `sweep run SWEEP.json`: trains the runs of a sweep file, or resumes them; and
// `sweep resume DIR`, the same for what a sweep has left in its directory.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>

#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/slurm/slurm_task.h"
#include "runmanager/training/stop_signals.h"
#include "tools/commands.h"
#include "tools/commands/launch.h"
#include "tools/commands/plan.h"
#include "tools/commands/run_options.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// A task of a cluster trains the runs that it was submitted for.
int train_as_task(const Sweep& sweep, RunOptions& options, MpiSession* session) {
  if (!options.list.empty()) {
    const std::vector<std::string> runs = runs_of_this_task(options.runner.logdir / sweep.name, options.list);
    options.runner.takes = [names = std::set<std::string>(runs.begin(), runs.end())](const RunConfig& run) {
      return names.contains(run.name);
    };
  }
  const int code = train_sweep(sweep, options.runner, session);
  SlurmClient client;
  return end_slurm_task(code, options.runner.logdir / sweep.name, options.runner.fail_fast, client);
}

int print_dry_run(const RunOptions& options) {
  refuse_given({{"--yes", options.yes},
                {"--wait", options.launcher.wait},
                {"--slurm", !options.launcher.slurm.empty()},
                {"--leave", options.runner.leave}},
               "is not for --dry-run, which gets no data and trains nothing");
  return print_plan({.sweep = options.sweep,
                     .runner = options.runner,
                     .is_dry_run = true,
                     .format = options.runner.json ? TableFormat::kJson : TableFormat::kText});
}

int run(RunOptions& options, const std::vector<std::string>& typed, MpiSession* session) {
  if (options.dry_run) return print_dry_run(options);
  // Also a signal that comes while the file is read stops the sweep.
  std::optional<StopSignals> signals;
  if (options.launcher.launcher != "slurm") signals.emplace();
  options.sweep.load.slurm = options.launcher.slurm;
  const Sweep sweep = load_sweep(options.sweep);
  if (options.yes) {
    if (const int code = get_missing_datasets(sweep); code != kExitDone) return code;
  }
  options.runner.logdir = logdir_of(options.sweep);
  options.runner.command = typed;
  if (has_directory(options.sweep)) {
    if (is_slurm_task()) return train_as_task(sweep, options, session);
    if (options.launcher.launcher.empty() && has_slurm_jobs(options.runner.logdir / sweep.name)) {
      signals.reset();
      options.launcher.launcher = "slurm";
    }
  }
  return train_or_launch(sweep, options.runner, options.launcher, session);
}

CommandAction add_run(CLI::App& app, MpiSession* session, bool wants_directory) {
  auto options = std::make_shared<RunOptions>();
  add_run_options(app, *options);
  if (wants_directory)
    app.get_option("file")->description("the directory of a sweep, runs/NAME")->type_name("DIR");
  return [options, session, wants_directory](const std::vector<std::string>& typed) {
    if (wants_directory && !has_directory(options->sweep)) check_is_directory(options->sweep);
    return run(*options, typed, session);
  };
}

}  // namespace

Command run_command(MpiSession* session) {
  return {.name = kDefaultCommand,
          .description = "train all runs of a sweep file, or resume; \"run\" may be left out",
          .missing_argument = "a sweep file is needed: sweep SWEEP.json [key=v1,v2,... ...] [options]",
          .add_to = [session](CLI::App& app) { return add_run(app, session, false); }};
}

Command resume_command(MpiSession* session) {
  return {.name = "resume",
          .description = "go on with the sweep in a directory, without its sweep file",
          .missing_argument = "a directory is needed: sweep resume runs/NAME [options]",
          .add_to = [session](CLI::App& app) { return add_run(app, session, true); }};
}

}  // namespace sweep
