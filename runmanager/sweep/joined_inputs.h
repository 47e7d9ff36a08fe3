// Checks that processes that share a sweep read the same data and first weights: each reads its own, and
// another may finish a run that one began.
#pragma once

#include <filesystem>
#include <string>

#include "runmanager/config/run_config.h"
#include "runmanager/kinds/run_kind.h"

namespace sweep {

/// Leaves the digests of what the runs read here in the sweep's directory, for those who join later.
/// `kind` has loaded the data. Throws IoError; DataError if weights cannot be read.
void write_inputs(const std::filesystem::path& directory, const Sweep& sweep, RunKind& kind);

/// Returns the differences between what the runs read here and where write_inputs() was called, as lines that
/// each follow a line break; "" if there are none, or if that is not known. Paths need not be the same.
/// Throws DataError if weights cannot be read.
std::string differences_from_inputs(const std::filesystem::path& directory, const Sweep& sweep,
                                    RunKind& kind);

}  // namespace sweep
