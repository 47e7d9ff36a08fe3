// Reads "search": how trials are chosen and which are ended early, and what is known before the first one.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "runmanager/config/search_spec.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// The epochs, or reports, of a whole run that no axis changes.
int epochs_of(const JsonView& file);

/// Returns "search" of `root`; nothing if it is not given or only asks for the grid. Reports every mistake,
/// also conflicts with the axes in `space`, and keys that the method does not use unless the file is the
/// sweep.json of an earlier start, `is_recorded`.
std::optional<SearchSpec> read_search(const JsonView& root, const Space& space, bool is_recorded,
                                      Problems& problems);

/// How many trials the search of a sweep.json may have, if it adds them while others are trained; else 0.
std::size_t trials_to_come(const nlohmann::ordered_json& sweep);

/// Whether any axis is a range of numbers.
bool has_range(const Space& space);

/// Whether the search draws points, instead of trying every combination.
bool draws_points(const SearchSpec& search, const Space& space);

/// Reports ends of ranges that the keys do not allow.
void check_ranges(const Space& space, Problems& problems);

/// If "search.learn_from" of `root` names directories: replaces them by what `record`, the sweep.json of an
/// earlier start, has learned from the same ones for the same metric, as these sweeps may have grown.
/// `learned`: what sweep.json says of this, null before the first start. Reports results for another metric.
void learn_as_before(JsonDocument& root, const SearchSpec& search, const std::filesystem::path& record,
                     nlohmann::ordered_json& learned, Problems& problems);

/// Reads "search.points" and "search.learn_from" of `root` into `search`. Replaces the directories of sweeps
/// in `root` by their results, so that the sweep's records have them. A directory is looked for in
/// `directory`, the sweep file's, then in the current one. `base` is the file with its plain values: a run
/// that had another value there does not count. Reports every mistake.
void read_known_points(JsonDocument& root, const std::vector<Axis>& axes, const SearchDomain& domain,
                       const JsonView& base, const std::filesystem::path& directory, SearchSpec& search,
                       Problems& problems);

}  // namespace sweep
