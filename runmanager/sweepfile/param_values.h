// Values of swept keys as run names, tables and TensorBoard show them.
#pragma once

#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {

/// Gives each key one type in all runs, as TensorBoard needs it: integers beside fractions become doubles,
/// any other mix becomes text.
void unify_types(const std::vector<std::string>& keys, std::vector<Params>& runs,
                 std::vector<ExcludedRun>& excluded);

/// Replaces paths, which are absolute by now and would make long names, by the parts in which those of
/// `combinations` differ.
void shorten_paths(const std::vector<Combination>& combinations, std::vector<Params>& runs,
                   std::vector<ExcludedRun>& excluded);

}  // namespace sweep
