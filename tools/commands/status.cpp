// `sweep status`: where a sweep stands.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "runmanager/inspect/sweep_status.h"
#include "runmanager/slurm/slurm_status.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/print_json.h"

namespace sweep {
namespace {

struct StatusOptions {
  std::filesystem::path directory = "runs";
  bool json = false;
  bool expect_done = false;
};

// What another machine has written may become visible here only so much later.
constexpr std::chrono::seconds kVisibleAfter{60};
constexpr std::chrono::milliseconds kLookAgainAfter{500};

std::size_t unfinished_runs(const SweepStatus& status) {
  std::size_t count = 0;
  for (const RunStatus unfinished : {RunStatus::kPending, RunStatus::kRunning, RunStatus::kInterrupted}) {
    const auto found = status.statuses.find(unfinished);
    count += found == status.statuses.end() ? 0 : found->second;
  }
  return count;
}

bool all_done(const SweepStatus& status) {
  return unfinished_runs(status) == 0 && !status.statuses.contains(RunStatus::kFailed);
}

// The status once every run has ended, or does not end any more.
SweepStatus last_status(const std::filesystem::path& directory) {
  SweepStatus status = sweep_status(directory);
  auto end = std::chrono::steady_clock::now() + kVisibleAfter;
  while (unfinished_runs(status) > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLookAgainAfter);
    SweepStatus next = sweep_status(directory);
    if (next.statuses != status.statuses) end = std::chrono::steady_clock::now() + kVisibleAfter;
    status = std::move(next);
  }
  return status;
}

int print_status(const StatusOptions& options) {
  const std::filesystem::path directory = find_sweep(options.directory);
  const SweepStatus status = options.expect_done ? last_status(directory) : sweep_status(directory);
  std::optional<SlurmStatus> slurm;
  if (has_slurm_jobs(directory) && !options.expect_done) {
    SlurmClient client;
    slurm = slurm_status(directory, client);
  }
  if (options.json) {
    nlohmann::ordered_json json = to_json(status);
    if (slurm) json["slurm"] = to_json(*slurm);
    print_json(json);
  } else {
    std::cout << status_text(status, Terminal::of_output(),
                             slurm ? HowToGoOn::kSaidElsewhere : HowToGoOn::kSay);
    if (slurm) std::cout << slurm_status_text(*slurm, unfinished_runs(status), directory);
  }
  return options.expect_done && !all_done(status) ? kExitFailed : kExitDone;
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
            app.add_flag(
                "--expect-done", options->expect_done,
                "wait a minute for files of other machines, and end with 1 unless every run is completed, "
                "skipped or pruned");
            return [options](const auto&) { return print_status(*options); };
          }};
}

}  // namespace sweep
