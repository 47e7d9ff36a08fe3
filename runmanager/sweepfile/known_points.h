// A search's prior knowledge: points to try first, and results of other sweeps.
#pragma once

#include <filesystem>

#include "runmanager/config/problems.h"
#include "runmanager/config/search_spec.h"
#include "runmanager/sweepfile/axes.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Reads "search.points" and "search.learn_from" of `root` into `search`. Replaces the directories of sweeps
/// in `root` by their results, so that the sweep's records have them. A directory is looked for in
/// `directory`, the sweep file's, then in the current one. `base` is the file with its plain values: a run
/// that had another value there does not count. Reports every mistake.
void read_known_points(JsonDocument& root, const std::vector<Axis>& axes, const SearchDomain& domain,
                       const JsonView& base, const std::filesystem::path& directory, SearchSpec& search,
                       Problems& problems);

}  // namespace sweep
