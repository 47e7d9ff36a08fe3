// `sweep status`: where a sweep stands.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "runmanager/inspect/sweep_status.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"

namespace sweep {
namespace {

struct StatusOptions {
  std::filesystem::path directory = "runs";
  bool json = false;
};

int print_status(const StatusOptions& options) {
  const SweepStatus status = sweep_status(find_sweep(options.directory));
  if (options.json) {
    print_json(to_json(status));
  } else {
    std::cout << status_text(status, Terminal::of_output());
  }
  return kExitDone;
}

}  // namespace

Command status_command() {
  return {.name = "status",
          .description = "where a sweep stands: runs by state, those in training, the time left",
          .missing_argument = "",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<StatusOptions>();
            app.add_option("directory", options->directory,
                           "of a sweep, or a log directory with one sweep that runs; default: runs")
                ->type_name("DIR");
            app.add_flag("--json", options->json, "as JSON");
            return [options](const auto&) { return print_status(*options); };
          }};
}

}  // namespace sweep
