// Reads "search": how trials are chosen and which are ended early.
#pragma once

#include <optional>

#include "runmanager/config/problems.h"
#include "runmanager/config/search_spec.h"
#include "runmanager/sweepfile/axes.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Returns "search" of `root`; nothing if it is not given or only asks for the grid. Reports every mistake,
/// also conflicts with the axes in `space`, and keys that the method does not use unless the file is the
/// sweep.json of an earlier start, `is_recorded`.
std::optional<SearchSpec> read_search(const JsonView& root, const SearchSpace& space, bool is_recorded,
                                      Problems& problems);

/// Whether any axis is a range of numbers.
bool has_range(const SearchSpace& space);

/// Whether the search draws points, instead of trying every combination.
bool draws_points(const SearchSpec& search, const SearchSpace& space);

}  // namespace sweep
