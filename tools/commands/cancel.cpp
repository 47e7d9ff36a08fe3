// `sweep cancel DIR`: ends a sweep on this machine, or its tasks on a cluster.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPause(100);
constexpr int kMaxPauses = 600;   // A program may save its state after SIGTERM.
constexpr int kPausesAlone = 20;  // until workers of a sweep that is gone have ended

// The process that the lock names, if it has this very file open.
std::optional<int> process_with(const LockFile& lock) {
  const std::optional<int> process = lock.process_here();
  if (!process) return std::nullopt;
  std::error_code error, ignored;
  fs::directory_iterator file(fmt::format("/proc/{}/fd", *process), error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    if (fs::equivalent(file->path(), lock.path(), ignored)) return process;
  }
  return std::nullopt;
}

// Returns what was ended.
std::string end_here(const fs::path& directory) {
  const std::string name = directory.string();
  if (!SweepDirectory::is_held(directory))
    throw DataError(name + ": no sweep works on it, and it was not submitted to a cluster");
  const LockFile lock(directory / kLockFile);
  const std::optional<int> process = process_with(lock);
  if (!process) throw DataError(fmt::format("{}: held by {}; end it there", name, lock.owner()));
  if (::kill(*process, SIGTERM) != 0)
    throw DataError(fmt::format("{}: cannot end process {}: {}", name, *process, std::strerror(errno)));
  int alone = 0;
  for (int i = 0; SweepDirectory::is_held(directory) && alone < kPausesAlone; ++i) {
    if (i == kMaxPauses)
      throw IoError(fmt::format("{}: process {} got SIGTERM, but has not ended yet", name, *process));
    std::this_thread::sleep_for(kPause);
    if (::kill(*process, 0) != 0) ++alone;
  }
  return fmt::format("Process {} was ended{}", *process,
                     alone < kPausesAlone ? "" : ", others still work on the sweep");
}

std::string end_tasks(const fs::path& directory) {
  SlurmClient client;
  const std::size_t tasks = cancel_jobs(directory, client);
  return tasks == 0 ? "No task ran or waited any more"
                    : fmt::format("{} {} ended", counted(tasks, "task"), tasks == 1 ? "was" : "were");
}

int cancel(const fs::path& directory) {
  const std::string ended = has_slurm_jobs(directory) ? end_tasks(directory) : end_here(directory);
  std::size_t finished = 0, runs = 0;
  for (const RunRecord& run : list_runs(directory)) {
    ++runs;
    finished += has_ended(run.status) ? 1 : 0;
  }
  std::cout << ended << fmt::format("; {} of {} runs are finished.\n", finished, runs);
  if (finished < runs)
    std::cout << "To go on: " << shell_command({"sweep", "resume", directory.string()}) << "\n";
  return kExitDone;
}

}  // namespace

Command cancel_command() {
  return {.name = "cancel",
          .description = "end a sweep, here or its tasks on a Slurm cluster; what is done stays",
          .missing_argument = "a directory is needed: sweep cancel runs/NAME",
          .add_to = command_with<fs::path>(cancel, [](CLI::App& app, fs::path& directory) {
            app.add_option("directory", directory, "runs/NAME")->type_name("DIR")->required();
          })};
}

}  // namespace sweep
