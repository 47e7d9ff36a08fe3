// From the combinations of a sweep file to RunConfigs, reading each value only once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/config_reader.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {

/// Returns `tree` with `values` set. Short paths come first, so that "optimizer" does not undo
/// "optimizer.momentum". The network's file is read once "network" itself is set, and before values below it.
JsonDocument with_values(JsonDocument tree, std::vector<Assignment> values, NetworkFiles& files,
                         Problems& problems);

/// Reads runs that differ in the values of axes. Common settings are completed once and shared, and so is
/// each value of an axis, so a run costs about a microsecond, however large its network is. Not thread-safe.
/// Its runs keep it alive, to name the places of their settings.
class CombinationReader : public std::enable_shared_from_this<CombinationReader> {
 public:
  /// `tree` is the sweep file without axes and rules, `plain` what the command line sets in it. `axes` owns
  /// the axes of the combinations.
  CombinationReader(JsonDocument tree, std::vector<Assignment> plain, NetworkFiles files, ReadContext context,
                    std::shared_ptr<const void> axes)
      : tree_(std::move(tree)),
        plain_(std::move(plain)),
        files_(std::move(files)),
        context_(std::move(context)),
        axes_(std::move(axes)) {}

  /// The run of a combination, as read_run_config() gives it, without `index`, `name` and `params`. Reports
  /// every mistake.
  RunConfig read(const Combination& combination, Problems& problems);

 private:
  using Json = nlohmann::ordered_json;
  // What the runs with the same values of the axes at or below a key have there.
  struct Section {
    PutIntoRun put{};
    std::shared_ptr<const Json> json{};
  };
  using Choice = std::pair<const Axis*, std::size_t>;  // an axis and the index of its value

  RunConfig read_command_run(const Combination& combination, Problems& problems);
  void note_keys_of(const Combination& combination);
  const Section& section_of(const Combination& combination, const Setting& setting, Problems& problems);
  JsonDocument tree_with(const Combination& combination, const std::string& key, Problems& problems);
  std::optional<std::string> place_of(const Combination& combination, const std::string& path);

  JsonDocument tree_;
  std::vector<Assignment> plain_;
  NetworkFiles files_;
  ReadContext context_;
  std::shared_ptr<const void> axes_;
  std::vector<const Setting*> swept_;  // with an axis in any combination so far
  std::map<std::pair<const Setting*, std::vector<Choice>>, Section> sections_;
  std::optional<RunConfig> common_;  // of the first run; the sections of swept_ are put over it
  std::vector<std::shared_ptr<const Json>> repeats_;  // the numbers as JSON
};

}  // namespace sweep
