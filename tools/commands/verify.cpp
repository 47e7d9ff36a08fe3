// `sweep verify`: trains finished runs again, and says whether every bit is the same.
#include "runmanager/inspect/verify.h"
#include "core/base/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable.h"
#include "tools/commands/run_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

int verify(const VerifyOptions& options) {
  const VerifyReport report = verify_sweep(options, environment_with_workers());
  const auto trained = std::count_if(report.runs.begin(), report.runs.end(),
                                     [](const VerifiedRun& run) { return run.not_compared.empty(); });
  std::cout << fmt::format("{} of {} trained again\n", trained, counted(report.finished, "finished run"));
  return report.exit_code;
}

}  // namespace

Command verify_command() {
  return {.name = "verify",
          .description = "train finished runs of a sweep again, and compare every bit",
          .missing_argument = "a directory is needed: sweep verify runs/NAME",
          .add_to = command_with<VerifyOptions>(verify, [](CLI::App& app, VerifyOptions& options) {
            // Flushed after each, since training the next one takes a while.
            options.on_run = [](const VerifiedRun& run) {
              std::cout << printable(verified_text(run)) << std::endl;
            };
            add_value(app, "directory DIR", options.directory, "runs/NAME")->required();
            add_count(app, "--runs", options.runs, "N runs, spread over the sweep; 0: all", 0, 100000)
                ->capture_default_str();
            add_count(app, "--threads", options.threads, "CPU threads, which must not matter; 0: all", 0,
                      4096)
                ->capture_default_str();
            app.footer(
                "Exit codes: 0 every bit is the same, 1 some are not, 2 no such directory or no finished run "
                "in it that can be trained again.");
          })};
}

}  // namespace sweep
