#include "runmanager/inspect/sweep_listing.h"

#include <algorithm>

#include "core/base/error.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/sweep_directory.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// What a killed sweep says of itself: see SweepDirectory::is_held().
RunStatus derived_status(const RunRecord& run, bool is_running) {
  return run.status == RunStatus::kRunning && !is_running ? RunStatus::kInterrupted : run.status;
}

void sum_up(const RecordedSweep& sweep, ListedSweep& listed) {
  const std::vector<RunRecord>& runs = sweep.runs;
  listed.runs = runs.size();
  for (const RunRecord& run : runs) {
    ++listed.statuses[derived_status(run, listed.is_running)];
    // UTC times of one format sort as texts.
    if (!run.started.empty() && (listed.started.empty() || run.started < listed.started))
      listed.started = run.started;
    listed.ended = std::max(listed.ended, run.ended);
  }
  if (const auto best = best_run(runs, goals_of(sweep))) {
    listed.best = runs[*best].name;
    listed.best_accuracy = run_metric(runs[*best], "validation_accuracy");
    if (!listed.best_accuracy) listed.best_accuracy = run_metric(runs[*best], "accuracy");
  }
}

void add_sweeps(const fs::path& directory, const fs::path& logdir, int levels,
                std::vector<ListedSweep>& sweeps) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    // Links are followed nowhere else either, and could lead back here.
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) continue;
    if (has_runs(it->path())) {
      sweeps.push_back(list_sweep(it->path(), it->path().lexically_relative(logdir).string()));
    } else if (levels > 1) {
      add_sweeps(it->path(), logdir, levels - 1, sweeps);
    }
  }
}

}  // namespace

ListedSweep list_sweep(const fs::path& directory, const std::string& path) {
  ListedSweep listed;
  listed.path = path;
  try {
    listed.is_running = SweepDirectory::is_held(directory);
    sum_up(read_sweep(directory), listed);
  } catch (const Error& error) {
    listed.problem = error.what();
  }
  return listed;
}

std::vector<ListedSweep> list_sweeps(const fs::path& logdir) {
  std::error_code error;
  if (!fs::is_directory(logdir, error))
    throw DataError(logdir.string() + ": " +
                    (fs::exists(logdir, error) ? "is not a directory" : "is not there") +
                    "; want the directory of a sweep, such as runs/NAME, or a log directory");
  std::vector<ListedSweep> sweeps;
  add_sweeps(logdir, logdir, kMaxFolderLevels, sweeps);
  std::sort(sweeps.begin(), sweeps.end(),
            [](const ListedSweep& a, const ListedSweep& b) { return a.path < b.path; });
  return sweeps;
}

}  // namespace sweep
