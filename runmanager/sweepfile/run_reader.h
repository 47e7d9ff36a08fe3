// From the combinations of a sweep file, or the points that a search draws, to runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
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

/// The value at `path` as a parameter of a run: of a network its name, of other objects and lists their JSON.
ParamValue param_of(const JsonView& value, const KeyPath& path);

/// The values of axes as run names, tables and TensorBoard show them, each key with one type. Paths are
/// shortened to the parts in which those of a key differ: they are absolute and would make long names.
class SweptValues {
 public:
  /// The axes have to live as long, and each has a value. A search may add values of a range to them.
  explicit SweptValues(std::vector<const Axis*> axes);

  /// The values of a combination, and its repeat if there are `repeats`.
  Params of(const Combination& combination, bool repeats) const;

  /// The swept keys that `run` has no value of, each with the value that holds in the run: that of its
  /// complete settings, or else the default, as it would be of an optimizer that the run does not use. Leaves
  /// out keys without such a value, and all keys of a program, which has its own defaults.
  Params in_force(const RunConfig& run) const;

 private:
  std::vector<const Axis*> axes_;
  std::map<const Axis*, std::vector<ParamValue>> values_;  // those that the axes had at the start
};

/// Reads runs that differ in the values of axes. Common settings are completed once and shared, and so is
/// each value of an axis, so a run costs about a microsecond, however large its network is. Not thread-safe.
/// Its runs keep it alive, to name the places of their settings.
class RunReader : public std::enable_shared_from_this<RunReader> {
 public:
  /// `base` is the file, whose plain values conditions may test; `tree` the same without axes and rules, and
  /// `plain` what the command line sets in it.
  RunReader(SearchSpace space, const JsonView& base, JsonDocument tree, std::vector<Assignment> plain,
            NetworkFiles files, ReadContext context)
      : space_(std::move(space), base),
        swept_(space_.axes()),
        tree_(std::move(tree)),
        plain_(std::move(plain)),
        files_(std::move(files)),
        context_(std::move(context)) {}

  /// The domain that a search draws points from: the axes of the first grid. It keeps this alive.
  SearchDomain domain() const { return Space::domain_of({shared_from_this(), &space_}); }

  /// Reads the run of every combination into `sweep`, with its keys and what is left out. Reports every
  /// mistake. `root` is the file with what the command line sets in it. Throws ConfigError.
  void read_grids(const JsonView& root, Sweep& sweep, Problems& problems);

  /// Draws the points that can be chosen without results, and reads their runs into `sweep`, with its keys
  /// and its TrialSource. `epochs`: of a trial. Throws ConfigError.
  void draw_trials(const SearchSpec& search, int epochs, Sweep& sweep);

 private:
  using Json = nlohmann::ordered_json;
  // What the runs with the same values of the axes at or below a key have there.
  struct Section {
    PutIntoRun put{};
    std::shared_ptr<const Json> json{};
  };
  using Choice = std::pair<const Axis*, std::size_t>;  // an axis and the index of its value

  RunConfig read(const Combination& combination, Problems& problems);
  RunConfig read_trial(std::size_t index, const SearchPoint& point, int repeat);
  void note_keys_of(const Combination& combination);
  const Section& section_of(const Combination& combination, const Setting& setting, Problems& problems);
  JsonDocument tree_with(const Combination& combination, const std::string& key, Problems& problems);
  std::optional<std::string> place_of(const Combination& combination, const std::string& path);

  Space space_;
  SweptValues swept_;
  JsonDocument tree_;
  std::vector<Assignment> plain_;
  NetworkFiles files_;
  ReadContext context_;
  std::vector<const Setting*> changing_;  // with an axis in any combination so far
  std::map<std::pair<const Setting*, std::vector<Choice>>, Section> sections_;
  std::optional<RunConfig> common_;  // of the first run; the sections of changing_ are put over it
  std::vector<std::shared_ptr<const Json>> repeats_;  // the numbers as JSON
  std::map<std::string, std::size_t> trials_;         // by their names in lower case
};

}  // namespace sweep
