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
};

/// Reads the checkpoint in `run_directory`. It is usable if it is undamaged and of the same run: same
/// configuration, data, numerics and initial weights.
ResumePoint find_resume_point(const PreparedRun& run, const std::filesystem::path& run_directory);

}  // namespace sweep
