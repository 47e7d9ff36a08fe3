// Finds the runs in a directory and reads their records.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Whether `directory` holds runs: it has a sweep.json, or directories with a run.json.
bool has_runs(const std::filesystem::path& directory);

/// A sweep as its directory has it.
struct RecordedSweep {
  nlohmann::ordered_json file;  // its sweep.json, an object; null if there is none
  /// In the order of the file; a run that was not started has a record with only its name. Programs with
  /// their own training loop leave no file: then in the order in which the runs were started.
  std::vector<RunRecord> runs;
};

/// Throws DataError if `directory` holds no runs, see has_runs(), or if a file cannot be read.
RecordedSweep read_sweep(const std::filesystem::path& directory);
/// Only the runs, perhaps none. Throws DataError if a file cannot be read.
std::vector<RunRecord> list_runs(const std::filesystem::path& directory);

/// The names of runs that earlier starts have left in `directory` and that its sweep.json, `file`, no longer
/// has, sorted. Empty without a sweep.json.
std::vector<std::string> runs_no_longer_listed(const std::filesystem::path& directory,
                                               const nlohmann::ordered_json& file);

/// The goals of its runs: recorded_goals(), completed by default_goals().
Goals goals_of(const RecordedSweep& sweep);

/// Whether a sweep.json is that of a search, which draws points or ends trials early, so that its results are
/// not those of a complete grid.
bool is_search(const nlohmann::ordered_json& file);

/// read_sweep() with the statuses that the runs have now. `is_held`: whether a process has the directory, as
/// was asked before. run.json of a killed sweep still says "running". A run that a living sweep does not
/// train waits for a free slot, or for the results of other trials: it is pending. Other programs with runs
/// have no lock, so theirs keep the recorded statuses.
RecordedSweep read_current_sweep(const std::filesystem::path& directory, bool is_held);
/// The same; finds out itself whether a process has the directory.
RecordedSweep read_current_sweep(const std::filesystem::path& directory);
/// The same of one run in its sweep's directory.
RunRecord read_current_run(const std::filesystem::path& run_directory);

}  // namespace sweep
