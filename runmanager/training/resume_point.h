// Finds out whether a run can go on after the last epoch of an earlier start and which epochs its events
// show, and takes it over from a process that shares the sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/network/network.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

struct ResumePoint {
  std::optional<Checkpoint> checkpoint = {};  // empty: the run starts from the beginning
  std::string problem = {};                   // why a checkpoint that is there cannot be used; for log.txt
  bool is_previous = false;                   // it is kPreviousCheckpointFile
};

/// Reads the checkpoints in `run_directory` and returns the newest usable one: undamaged and of the same run,
/// with the same configuration, data, numerics and initial weights.
ResumePoint find_resume_point(const PreparedRun& run, const std::filesystem::path& run_directory);

/// The steps of the epochs that RunLog::epoch() has written to its events files in `directory`; a power cut
/// may have removed some. Reads each file up to its first damage. Throws DataError if a file cannot be read.
std::set<std::int64_t> recorded_epochs(const std::filesystem::path& directory);

/// Removes the events files in `directory` that this program has written. Throws IoError.
void remove_events(const std::filesystem::path& directory);

/// Removes the events files that are not of the run although their names may be earlier: those of a process
/// that was cut off, and what take_over_run() has left if it was interrupted.
void remove_other_events(const std::filesystem::path& run_directory, const RunPosition& position);

/// Copies the events that `point` needs, writes a checkpoint that tells of the copy, which becomes
/// `point.checkpoint`, and removes the other events: what a process that was cut off from the others still
/// appends goes to a file without a name. `id`: RunOwner::id. `check_owner` is called before anything is made
/// and before anything is removed, and may throw. Throws IoError and DataError.
void take_over_run(const std::filesystem::path& run_directory, std::string_view id, const Network& network,
                   const std::function<void()>& check_owner, ResumePoint& point);

}  // namespace sweep
