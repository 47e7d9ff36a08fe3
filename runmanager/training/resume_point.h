// Finds out whether a run can go on after the last epoch of an earlier start.
#pragma once

#include <filesystem>
#include <optional>
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

}  // namespace sweep
