// Runs of one or several sweeps, the settings in which they differ, and their order.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"

namespace sweep {

/// A run, and the directory of the sweep that it is from as the user named it.
struct SourceRun {
  std::string source;
  RunRecord record;
};
std::vector<SourceRun> source_runs(const std::filesystem::path& directory, std::vector<RunRecord> records);

/// The key that distinguishes runs of several sweeps.
inline constexpr std::string_view kSweepKey = "sweep";

/// Returns the value of `key` in `run`: of an axis, or else of its configuration; "device" is the one it was
/// trained on. "" if there is none.
std::string setting_text(const SourceRun& run, const std::string& key);

using RunTest = bool (*)(const SourceRun& run);
bool is_completed(const SourceRun& run);
/// The keys with more than one value among those of `runs` that count: axes in the order of the sweep file,
/// then "device", the repeat, and "sweep" if they are of several.
std::vector<std::string> differing_keys(const std::vector<SourceRun>& runs, RunTest counts);
/// The same among the completed runs, but "device" first, or not at all if some runs do not say theirs.
std::vector<std::string> varying_keys(const std::vector<SourceRun>& runs);

/// Sorts by `key`: a parameter, upwards, numbers by their value; or a name of metric_names(), the best first:
/// see goal_for(). Runs without a value, or with one that is not a number, come last; equal ones keep their
/// order. Throws ConfigError, which lists what there is, for a key that no run has.
void sort_runs(std::vector<RunRecord>& runs, const std::string& key, const Goals& goals);

}  // namespace sweep
