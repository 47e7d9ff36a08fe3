// `sweep SWEEP.json`, or `sweep run SWEEP.json`: trains the runs of a sweep file, or resumes them.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "runmanager/training/stop_signals.h"
#include "tools/commands.h"
#include "tools/commands/run_options.h"

namespace sweep {

Command run_command(MpiSession* session) {
  return {.name = kDefaultCommand,
          .description = "train all runs of a sweep file, or resume; \"run\" may be left out",
          .missing_argument = "a sweep file is needed: sweep SWEEP.json [key=v1,v2,... ...] [options]",
          .add_to = [session](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<RunOptions>();
            add_run_options(app, *options);
            // For the help: run_command_line() has put "plan" in its place.
            app.add_flag_callback(
                "--dry-run", [] {}, "train nothing: print what `sweep plan` prints");
            return [options, session](const std::vector<std::string>& typed) {
              // Also a signal that comes while the file is read stops the sweep.
              std::optional<StopSignals> signals;
              if (options->launcher.launcher != "slurm") signals.emplace();
              options->sweep.load.slurm = options->launcher.slurm;
              const Sweep sweep = load_sweep(options->sweep);
              options->runner.command = typed;
              return train_or_launch(sweep, options->runner, options->launcher, session);
            };
          }};
}

}  // namespace sweep
