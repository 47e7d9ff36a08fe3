// From the combinations of a sweep file to RunConfigs, reading each value only once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/config_reader.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {

/// Returns `tree` with `values` set. Short paths come first, so that "optimizer" does not undo
/// "optimizer.momentum". The network's file is read once "network" itself is set, and before values below it.
JsonNode with_values(JsonNode tree, std::vector<Assignment> values, NetworkFiles& files, Problems& problems);

/// Reads runs that differ in the values of axes. What runs have in common is read once and shared by them, as
/// is each value of an axis, so a run costs about a microsecond, however large its network is.
/// Not thread-safe.
class CombinationReader {
 public:
  /// `tree` is the sweep file without axes and rules, `plain` what the command line sets in it. Refers to all
  /// but `plain`; keep them alive, and the axes of the combinations, too.
  CombinationReader(const JsonNode& tree, std::vector<Assignment> plain, NetworkFiles& files,
                    const ReadContext& context, Problems& problems)
      : tree_(tree), plain_(std::move(plain)), files_(files), context_(context), problems_(problems) {}

  /// The run of a combination, as read_run_config() and resolved_json() give it, without `index`, `name` and
  /// `params`. Reports every mistake.
  RunConfig read(const Combination& combination);

  /// The values of the combination's axes, and its repeat if there are `repeats`.
  Params params_of(const Combination& combination, bool repeats);

 private:
  // What the runs with the same values of the axes at or below a key have there.
  struct PartValue {
    PutIntoRun put{};
    std::shared_ptr<const nlohmann::ordered_json> json{};
    std::shared_ptr<const Origins::Locations> origins{};
  };
  using Choice = std::pair<const Axis*, std::size_t>;  // an axis and the index of its value

  RunConfig read_command_run(const Combination& combination);
  void note_keys_of(const Combination& combination);
  void read_common(const Combination& combination);
  const PartValue& part_value(const Combination& combination, const RunPart& part);
  JsonNode tree_of(const char* key) const;
  std::vector<Assignment> values_of(const Combination& combination, const char* key) const;

  const JsonNode& tree_;
  std::vector<Assignment> plain_;
  NetworkFiles& files_;
  const ReadContext& context_;
  Problems& problems_;
  std::vector<const RunPart*> swept_;  // with an axis in any combination so far
  std::map<std::pair<const RunPart*, std::vector<Choice>>, PartValue> parts_;
  std::unordered_map<const Axis*, std::vector<std::optional<ParamValue>>> params_;  // by value
  std::optional<RunConfig> common_;  // of the first run; those of swept_ are put over it
  std::shared_ptr<const nlohmann::ordered_json> common_json_;
  std::vector<std::shared_ptr<const nlohmann::ordered_json>> repeats_;  // the numbers as JSON
};

}  // namespace sweep
