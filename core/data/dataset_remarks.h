// What a user should know of a data set that was loaded.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace sweep {

/// Returns one line each: how many files were skipped, with the first names and reasons, and Dataset::notes.
/// Empty if there is nothing to say.
std::vector<std::string> dataset_remarks(const Dataset& dataset);

}  // namespace sweep
