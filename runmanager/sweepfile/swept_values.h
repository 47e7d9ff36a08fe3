// Values of swept keys as run names, tables and TensorBoard show them.
#pragma once

#include <map>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {

/// The value at `path` as a parameter of a run: of a network its name, of other objects and lists their JSON.
ParamValue param_of(const JsonView& value, const KeyPath& path);

/// The values of axes, each key with one type. Paths are shortened to the parts in which those of a key
/// differ: they are absolute and would make long names.
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

}  // namespace sweep
