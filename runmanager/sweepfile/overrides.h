// What the command line changes in a sweep file: key=value, or key=value,value,… for an axis.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Reads "lr=0.1,0.01" and the options --epochs and --seed and changes `root`: the values of an axis of the
/// file are replaced; several values for a key that is no axis make one, after the others; plain values of
/// "name" and "repeats" are set. Returns the other plain values, which are set once the network's file has
/// been read. A value is JSON if it can be read so, else a string. Reports every mistake, naming the
/// override.
std::vector<Assignment> apply_overrides(JsonDocument& root, std::span<const std::string> overrides,
                                        const LoadOptions& options, Problems& problems);

}  // namespace sweep
