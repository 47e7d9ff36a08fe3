// `sweep cancel DIR`: ends a sweep on this machine, or its tasks on a cluster.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/sweep_status.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/sweepfile/search_reader.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPause(100);
constexpr int kMaxPauses = 600;  // A program may save its state after SIGTERM.

// The processes of this machine that work on the sweep. `sweep status` also has the lock, for a moment.
std::vector<int> processes_here(const LockFile& lock) {
  const auto look = [&lock] {
    std::vector<int> found = locks_here(read_file("/proc/locks"), lock);
    std::ranges::sort(found);
    return found;
  };
  std::vector<int> before = look();
  if (before.empty()) return before;
  std::this_thread::sleep_for(kPause);
  std::vector<int> both;
  std::ranges::set_intersection(before, look(), std::back_inserter(both));
  return both;
}

// Returns what was ended.
std::string end_here(const fs::path& directory) {
  const std::string name = directory.string();
  if (!SweepDirectory::is_held(directory))
    throw DataError(name + ": no sweep works on it, and no task on a cluster");
  const LockFile lock(directory / kLockFile);
  const std::vector<int> processes = processes_here(lock);
  if (processes.empty()) throw DataError(fmt::format("{}: held by {}; end it there", name, lock.owner()));
  for (const int process : processes) {
    if (::kill(process, SIGTERM) != 0 && errno != ESRCH)
      throw DataError(fmt::format("{}: cannot end process {}: {}", name, process, std::strerror(errno)));
  }
  for (int i = 0; !processes_here(lock).empty(); ++i) {
    if (i == kMaxPauses)
      throw IoError(fmt::format("{}: got SIGTERM, but has not ended yet: process {}", name,
                                fmt::join(processes_here(lock), ", ")));
  }
  return fmt::format("Process {} ended{}", fmt::join(processes, ", "),
                     SweepDirectory::is_held(directory) ? ", others still work on the sweep" : "");
}

std::string end_all(const fs::path& directory) {
  if (has_slurm_jobs(directory)) {
    SlurmClient client;
    const std::size_t tasks = cancel_jobs(directory, client);
    if (tasks > 0) return fmt::format("{} ended", counted(tasks, "task"));
    if (!SweepDirectory::is_held(directory)) return "No task ran or waited any more";
  }
  return end_here(directory);
}

int cancel(const fs::path& directory) {
  require_directory(directory, "the directory of a sweep");
  const std::string ended = end_all(directory);
  const RecordedSweep sweep = has_runs(directory) ? read_sweep(directory) : RecordedSweep();
  const SweepStatus status = has_runs(directory) ? sweep_status(directory) : SweepStatus();
  const auto finished = static_cast<std::size_t>(
      std::ranges::count_if(sweep.runs, [](const RunRecord& run) { return has_ended(run.status); }));
  // A search that has found or taken enough leaves its other trials as they are.
  const std::size_t runs = status.search_end.empty() ? std::max(sweep.runs.size(), trials_to_come(sweep.file))
                                                     : finished + status.unfinished;
  std::cout << ended << fmt::format("; {} of {} runs are finished.\n", finished, runs);
  if (finished < runs)
    std::cout << "To go on: " << shell_command({typed_program(), "resume"}, directory) << "\n";
  return kExitDone;
}

}  // namespace

Command cancel_command() {
  return {.name = "cancel",
          .description = "end a sweep, here or its tasks on a Slurm cluster; what is done stays",
          .missing_argument = "a directory is needed: sweep cancel runs/NAME",
          .add_to = command_with<fs::path>(cancel, [](CLI::App& app, fs::path& directory) {
            add_value(app, "directory DIR", directory, "runs/NAME")->required();
          })};
}

}  // namespace sweep
