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

/// `run` with the status that it has now. run.json of a killed sweep still says "running"; the lock of the
/// sweep's directory tells whether it is. Other programs with runs have no lock, so theirs keep the recorded
/// status.
RunRecord with_current_status(RunRecord run, const std::filesystem::path& sweep);

}  // namespace sweep
