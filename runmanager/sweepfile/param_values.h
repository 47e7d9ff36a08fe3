// Values of swept keys as run names, tables and TensorBoard show them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {

/// Replaces paths, which are absolute by now and would make long names, by the parts in which those of
/// `combinations` differ, and gives each key one type.
void name_values(const std::vector<Combination>& combinations, std::vector<Params>& runs,
                 std::vector<ExcludedRun>& excluded);

/// The swept keys that `run` has no value of, each with the value that holds in the run: that of its complete
/// settings, or else the default, as it would be of an optimizer that the run does not use. Of the type that
/// the key has in `examples`. Left out are keys without such a value, and all of a program, whose defaults
/// are its own.
Params values_in_force(const std::vector<Grid>& grids, const RunConfig& run,
                       const std::map<std::string, ParamValue>& examples);
/// A value of each key that the parameters have.
void add_examples(const Params& params, std::map<std::string, ParamValue>& examples);

}  // namespace sweep
