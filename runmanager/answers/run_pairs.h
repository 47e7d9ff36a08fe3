// Finds the runs that differ only in one setting.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Two runs that differ in the key alone. Pointers are into the list that was paired.
struct RunPair {
  std::vector<std::pair<std::string, std::string>> settings;  // what both have, of the keys that vary
  const SourceRun* base = nullptr;
  const SourceRun* other = nullptr;
};

/// All pairs of one value of the key with the first value.
struct PairedValue {
  std::string base, other;
  std::vector<RunPair> pairs = {};
  std::vector<std::string> of_one = {};  // keys that only runs with one of the values have
};

struct RunPairs {
  std::string key;
  std::vector<PairedValue> values;
  std::vector<const SourceRun*> alone;  // completed runs without a partner
  std::vector<const SourceRun*> unfinished;
};

/// Returns the value of `key` in `run`: of an axis, or else of its configuration; "device" is the one it was
/// trained on. "" if there is none.
std::string setting_text(const SourceRun& run, const std::string& key);

using RunTest = bool (*)(const SourceRun& run);
/// The keys with more than one value among those of `runs` that count: axes in the order of the sweep file,
/// then "device", the repeat, and "sweep" if they are of several.
std::vector<std::string> differing_keys(const std::vector<SourceRun>& runs, RunTest counts);
/// The same among the completed runs, but "device" first, or not at all if some runs do not say theirs.
std::vector<std::string> varying_keys(const std::vector<SourceRun>& runs);

/// Pairs the completed of `runs` that agree in all varying keys except `key`. An empty key means the first
/// varying one if that is "device", or the only one. Runs of several sweeps are paired within each if
/// possible. The first value of the key in `runs` is the base. Throws ConfigError, which lists the varying
/// keys, if it is not clear which key is meant, or if it has only one value.
RunPairs pair_runs(const std::vector<SourceRun>& runs, std::string key);

}  // namespace sweep
