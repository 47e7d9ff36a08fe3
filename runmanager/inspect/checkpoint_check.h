// Whether a checkpoint is whole, and fits the network of its run.
#pragma once

#include <filesystem>

#include "runmanager/inspect/fsck.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Adds to `finding` what is wrong with the file at `path`. `record` is its run's, or null where that cannot
/// be read.
void check_checkpoint(const std::filesystem::path& path, const RunRecord* record, FileFinding& finding);

}  // namespace sweep
