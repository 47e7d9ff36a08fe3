// `sweep cancel DIR`: ends the tasks of a sweep on a cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/provenance.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

int cancel(const fs::path& directory) {
  if (!has_slurm_jobs(directory))
    throw DataError(fmt::format("{}: was not submitted to a cluster; want the directory of a sweep that was",
                                directory.string()));
  SlurmClient client;
  const std::size_t tasks = cancel_jobs(directory, client);
  std::size_t finished = 0, runs = 0;
  for (const RunRecord& run : list_runs(directory)) {
    ++runs;
    finished += has_ended(run.status) ? 1 : 0;
  }
  std::cout << (tasks == 0 ? std::string("No task ran or waited any more")
                           : fmt::format("{} {} ended", counted(tasks, "task"), tasks == 1 ? "was" : "were"))
            << fmt::format("; {} of {} runs are finished.\n", finished, runs);
  if (finished < runs)
    std::cout << "To go on: " << shell_command({"sweep", "resume", directory.string()}) << "\n";
  return kExitDone;
}

}  // namespace

Command cancel_command() {
  return {.name = "cancel",
          .description = "end the tasks of a sweep on a Slurm cluster; what they have done stays",
          .missing_argument = "a directory is needed: sweep cancel runs/NAME",
          .add_to = command_with<fs::path>(cancel, [](CLI::App& app, fs::path& directory) {
            app.add_option("directory", directory, "runs/NAME")->type_name("DIR")->required();
          })};
}

}  // namespace sweep
