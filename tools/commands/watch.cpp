// `sweep watch`: the live table of a sweep that runs elsewhere.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "runmanager/inspect/sweep_status.h"
#include "runmanager/inspect/watch.h"
#include "runmanager/slurm/slurm_status.h"
#include "runmanager/training/stop_signals.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

// A running sweep tells its progress about once a second.
constexpr std::chrono::milliseconds kBetweenLooks{250};

struct WatchArguments {
  std::filesystem::path directory = "runs";
  bool json = false;
};

int watch(const WatchArguments& arguments) {
  const std::filesystem::path directory = find_sweep(arguments.directory);
  const StopSignals signals;
  SlurmClient client;
  const auto elsewhere = [&] {
    if (!has_slurm_jobs(directory)) return WatchedElsewhere();
    const SlurmStatus status = slurm_status(directory, client);
    // One that does not answer may have tasks; Ctrl-C ends the waiting.
    return WatchedElsewhere{.lives = !status.known || status.any_live(), .line = slurm_line(status)};
  };
  watch_sweep(directory, {.terminal = Terminal::of_output(),
                          .json = arguments.json,
                          .stop_requested = [] { return StopSignals::requested() != 0; },
                          .wait = [] { std::this_thread::sleep_for(kBetweenLooks); },
                          .elsewhere = elsewhere});
  return kExitDone;
}

}  // namespace

Command watch_command() {
  return {.name = "watch",
          .description = "show a sweep that runs in another terminal, until it ends or Ctrl-C",
          .missing_argument = "",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto arguments = std::make_shared<WatchArguments>();
            app.add_option("directory", arguments->directory,
                           "of a sweep, or a log directory with one sweep that runs; default: runs")
                ->type_name("DIR");
            app.add_flag("--json", arguments->json, "a line of JSON per change");
            return [arguments](const auto&) { return watch(*arguments); };
          }};
}

}  // namespace sweep
