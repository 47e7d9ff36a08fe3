// Every combination of a search space's axes, in order, without what its rules leave out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/sweepfile/axes.h"
#include "runmanager/text/json_document.h"

namespace sweep {

/// One key with one of its values.
struct Assignment {
  std::string key;
  KeyPath path;
  std::shared_ptr<const JsonLocation> location;  // of the key
  JsonNode value;
};

/// One run before its settings are read.
struct Combination {
  std::vector<Assignment> assignments;  // the swept keys, in file order; "repeat" is not among them
  int repeat = 0;
  std::string excluded;  // why it is left out; empty: it is not
};

struct Expansion {
  std::vector<std::string> keys;  // every swept key, in file order; "repeat" last if there are repeats
  std::vector<Combination> combinations;
};

/// Takes the product of each grid's axes. The last axis varies fastest, zipped axes move together in the
/// position of the first of them, and repeats vary fastest of all. A combination that a "when" makes equal to
/// an earlier one is dropped. `base` is the file; conditions may test its plain values. Adds a problem,
/// and returns nothing, beyond 100 000 runs.
Expansion expand(const SearchSpace& space, const JsonNode& base, Problems& problems);

}  // namespace sweep
