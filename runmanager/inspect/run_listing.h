// Finds the runs in a directory and reads their records.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Whether `directory` holds runs: it has a sweep.json, or directories with a run.json.
bool has_runs(const std::filesystem::path& directory);

/// The records of the runs in `directory`. In a sweep's they are in the order of its sweep.json, and a run
/// that was not started has a record with nothing but its name. Programs with a training loop of their own
/// leave no sweep.json: then all runs are listed in the order in which they were started. Throws DataError if
/// a file cannot be read.
std::vector<RunRecord> list_runs(const std::filesystem::path& directory);

/// The names of runs that earlier starts have left in `directory` and that its sweep.json no longer has,
/// sorted. Empty without a sweep.json. Throws DataError if that cannot be read.
std::vector<std::string> runs_no_longer_listed(const std::filesystem::path& directory);

/// What `runs`, those of the sweep in `directory`, are judged by: the goals of its search, or
/// default_goals(). Throws DataError if its sweep.json cannot be read.
Goals goals_of_sweep(const std::filesystem::path& directory, const std::vector<RunRecord>& runs);

/// Whether the sweep in `directory` is a search, which draws points or ends trials early, so that its results
/// are not those of a complete grid. Throws DataError if its sweep.json cannot be read.
bool is_search(const std::filesystem::path& directory);

/// `run` with the status that it has now. run.json of a killed sweep still says "running"; the lock of the
/// sweep's directory tells whether it is. Other programs with runs have no lock, so for theirs nothing better
/// is known.
RunRecord with_current_status(RunRecord run, const std::filesystem::path& sweep);

}  // namespace sweep
