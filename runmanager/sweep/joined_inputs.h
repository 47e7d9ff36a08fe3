// What runs read beside the sweep file, data and first weights, where processes share a sweep: each reads
// its own, and a run that one of them begins may be finished by another.
#pragma once

#include <filesystem>
#include <string>

#include "runmanager/config/run_config.h"
#include "runmanager/kinds/run_kind.h"

namespace sweep {

/// Leaves the digests of what the runs read here in the sweep's directory, for those who join later.
/// `kind` has loaded the data. Throws IoError; DataError if weights cannot be read.
void write_inputs(const std::filesystem::path& directory, const Sweep& sweep, RunKind& kind);

/// Lines, each after a line break, with what the runs would read here otherwise than where write_inputs() was
/// called; "" if nothing, or if that is not known. Paths need not be the same. Throws DataError if weights
/// cannot be read.
std::string differences_from_inputs(const std::filesystem::path& directory, const Sweep& sweep,
                                    RunKind& kind);

}  // namespace sweep
