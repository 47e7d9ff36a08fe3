// Finds out whether a run can go on after the last epoch of an earlier start, and which epochs its events
// show.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "runmanager/records/checkpoint.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

struct ResumePoint {
  std::optional<Checkpoint> checkpoint;  // empty: the run starts from the beginning
  std::string problem;                   // why a checkpoint that is there cannot be used; for log.txt
  bool is_previous = false;              // it is kPreviousCheckpointFile
};

/// Reads the checkpoints in `run_directory` and returns the newest usable one: undamaged and of the same run,
/// with the same configuration, data, numerics and initial weights.
ResumePoint find_resume_point(const PreparedRun& run, const std::filesystem::path& run_directory);

/// The steps of the epochs that RunLog::epoch() has written to the events files in `directory`; a power cut
/// may have removed some. Reads each file up to its first damage. Throws DataError if a file cannot be read.
std::set<std::int64_t> recorded_epochs(const std::filesystem::path& directory);

/// Removes all events files in `directory`. Throws IoError.
void remove_events(const std::filesystem::path& directory);

}  // namespace sweep
