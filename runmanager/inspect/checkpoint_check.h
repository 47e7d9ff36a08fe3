// Checks that a checkpoint is complete and fits the network of its run.
#pragma once

#include <filesystem>

#include "runmanager/inspect/file_finding.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Checks the checkpoint at `path` and adds problems and notes to `finding`. `record` is the run's, or null
/// if it cannot be read; then the network is not checked.
void check_checkpoint(const std::filesystem::path& path, const RunRecord* record, FileFinding& finding);

}  // namespace sweep
