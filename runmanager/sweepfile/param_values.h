// Values of swept keys as run names, tables and TensorBoard show them.
#pragma once

#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {

/// Replaces paths, which are absolute by now and would make long names, by the parts in which those of
/// `combinations` differ, and gives each key one type.
void name_values(const std::vector<Combination>& combinations, std::vector<Params>& runs,
                 std::vector<ExcludedRun>& excluded);

}  // namespace sweep
