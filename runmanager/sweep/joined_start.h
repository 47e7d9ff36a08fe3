// What has to be so for processes to work on one sweep together.
#pragma once

#include <filesystem>
#include <string>

#include "runmanager/config/run_config.h"
#include "runmanager/kinds/run_kind.h"
#include "runmanager/sweep/sweep_runner.h"

namespace sweep {

/// Throws ConfigError, with the reason, if the sweep or an option is none that several processes can have
/// together.
void check_can_be_joined(const Sweep& sweep, const RunnerOptions& options);

/// Throws ConfigError if a lock in `directory` holds on this machine only and others may have the directory.
void check_locks_reach(const std::filesystem::path& directory);

/// What tells the runs of sweep.json in `directory` from those of `sweep`, by their names or by any setting
/// that changes their numbers; "" if they are the same.
std::string differences_from_sweep_file(const std::filesystem::path& directory, const Sweep& sweep,
                                        RunKind& kind);

/// Leaves the digests of what the runs read here in the sweep's directory, for those who join later.
/// `kind` has loaded the data. Throws IoError; DataError if weights cannot be read.
void write_inputs(const std::filesystem::path& directory, const Sweep& sweep, RunKind& kind);

/// Returns the differences between what the runs read here and where write_inputs() was called, as lines that
/// each follow a line break; "" if there are none, or if that is not known. Paths need not be the same.
/// Throws DataError if weights cannot be read.
std::string differences_from_inputs(const std::filesystem::path& directory, const Sweep& sweep,
                                    RunKind& kind);

}  // namespace sweep
