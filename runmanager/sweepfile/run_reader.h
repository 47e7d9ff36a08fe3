// From the combinations of a sweep file, or the points that a search draws, to runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/named_files.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// Completes every setting of a run and reads it, but not its `index`, `name` and `params`. `tree` is a sweep
/// file without axes and rules, or a recorded configuration. Reports every mistake; the run is of
/// no use then.
RunConfig read_run_config(const JsonView& tree, const ReadContext& context, Problems& problems);

/// Returns `tree` with `values` set. Short paths come first, so that "optimizer" does not undo
/// "optimizer.momentum". The network's file is read once "network" itself is set, and before values below it.
JsonDocument with_values(JsonDocument tree, std::vector<Assignment> values, NetworkFiles& files,
                         Problems& problems);

/// The value at `path` as a parameter of a run: of a network its name, of other objects and lists their JSON.
ParamValue param_of(const JsonView& value, const KeyPath& path);

/// The complete value of a key of runs, which they share.
struct RunSection {
  PutIntoRun put{};
  std::shared_ptr<const nlohmann::ordered_json> json{};
};

/// Reads runs that differ in the values of axes. Common settings are completed once and shared, and so is
/// each value of an axis, so a run costs about a microsecond, however large its network is. Not thread-safe.
/// Its runs keep it alive, to name the places of their settings.
class RunReader : public std::enable_shared_from_this<RunReader> {
 public:
  /// `file` has the axes and rules, whose mistakes are reported; `tree` is the same without them, and `plain`
  /// what the command line sets in it.
  RunReader(const JsonView& file, JsonDocument tree, std::vector<Assignment> plain, NetworkFiles files,
            ReadContext context, Problems& problems);

  const Space& space() const { return space_; }
  /// The domain that a search draws points from: the axes of the first grid. It keeps this alive.
  SearchDomain domain() const { return Space::domain_of({shared_from_this(), &space_}); }

  /// Reads the run of every combination into `sweep`, with its keys and what is left out. Reports every
  /// mistake. `root` is the file with what the command line sets in it. Throws ConfigError.
  void read_grids(const JsonView& root, Sweep& sweep, Problems& problems);

  /// Draws the points that can be chosen without results, and reads their runs into `sweep`, with its keys
  /// and its TrialSource. `epochs`: of a trial. Throws ConfigError.
  void draw_trials(const SearchSpec& search, int epochs, Sweep& sweep);

  /// Throws ConfigError if values of the space do not go together, as far as random points show: they would
  /// end a search in its middle, once it comes to them.
  void check_values_together();

 private:
  RunConfig read(const Combination& combination, Problems& problems);
  Params params_of(const Combination& combination) const;
  Params values_in_force(const RunConfig& run) const;
  RunConfig read_trial(std::size_t index, const SearchPoint& point, int repeat);
  // What the runs with the same values of the axes at or below a key have there.
  const RunSection& section_of(const Combination& combination, const Setting& setting, Problems& problems);
  JsonDocument tree_with(const Combination& combination, const std::string& key, Problems& problems);
  std::optional<std::string> place_of(const Combination& combination, const std::string& path);

  Space space_;
  const std::vector<const Axis*> axes_ = space_.axes();
  // The values of each axis, as names of runs, tables and TensorBoard show them.
  std::map<const Axis*, std::vector<ParamValue>> shown_;
  JsonDocument tree_;
  std::vector<Assignment> plain_;
  NetworkFiles files_;
  ReadContext context_;
  std::vector<const Setting*> changing_;  // with an axis in any combination so far
  std::map<std::pair<const Setting*, std::vector<AxisValue>>, RunSection> sections_;
  std::optional<RunConfig> common_;  // of the first run; the sections of changing_ are put over it
  std::vector<std::shared_ptr<const nlohmann::ordered_json>> repeats_;  // the numbers as JSON
  std::map<std::string, std::size_t> trials_;                           // by their names in lower case
};

}  // namespace sweep
