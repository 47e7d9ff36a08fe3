// Every combination of a search space's axes, in order, without what its rules leave out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/sweepfile/axes.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// One key with one value.
struct Assignment {
  std::string key;
  KeyPath path;
  std::shared_ptr<const JsonLocation> location;  // of the key
  JsonNode value;
};

/// An axis with one of its values.
struct AxisValue {
  const Axis* axis = nullptr;
  std::size_t index = 0;  // of the value
  const JsonNode& value() const { return axis->values[index]; }
};

/// One run before its settings are read.
struct Combination {
  std::vector<AxisValue> values;  // the swept keys, in file order; "repeat" is not among them
  int repeat = 0;
  const ExcludeRule* excluded = nullptr;  // what leaves it out; null: nothing does
};

/// What a search space expands to; refers to it.
struct Expansion {
  std::vector<std::string> keys;  // every swept key, in file order; "repeat" last if there are repeats
  std::vector<Combination> combinations;
};

/// Takes the product of each grid's axes. The last axis varies fastest, zipped axes move together in the
/// position of the first of them, and repeats vary fastest of all. A combination that a "when" makes equal to
/// an earlier one is dropped. `base` is the file; conditions may test its plain values. Adds a problem,
/// and returns nothing, beyond 100 000 runs.
Expansion expand(const SearchSpace& space, const JsonNode& base, Problems& problems);

/// "FILE:LINE:COLUMN: exclude.0: device is cpu and batch_size is 20000".
std::string exclusion_reason(const ExcludeRule& rule);

}  // namespace sweep
