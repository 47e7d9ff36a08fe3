// The hint that a sweep prints at its end: how to look at it in TensorBoard.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "runmanager/records/results.h"

namespace sweep {

/// TensorBoard ticks up to this many runs by itself. If there are more, it ticks none, and its pages open
/// empty until a filter leaves at most this many.
inline constexpr std::size_t kMaxTickedRuns = 40;

/// A regular expression of parts of the runs' names, such as "lr=0.01". It matches up to kMaxTickedRuns of
/// `names`, as many as a single key allows. Empty if no filter is needed.
std::string run_filter(std::span<const std::string> names);

/// One or two lines, each with a line break, with the command that shows the sweep in `directory`, and the
/// filter to type there if one is needed. If the sweep has repeats and more runs than TensorBoard ticks, the
/// means come first. `runs`: of the sweep; those that were skipped or never started do not count. `means`:
/// the names of the runs in mean_directory().
std::string view_hint(const std::filesystem::path& directory, std::span<const RunRecord> runs,
                      std::span<const std::string> means);

}  // namespace sweep
