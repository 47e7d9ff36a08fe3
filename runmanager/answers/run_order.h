// Sorts runs as people ask.
#pragma once

#include <string>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Sorts by `key`: a parameter, upwards, numbers by their value; or a name of metric_names(), the best first:
/// see goal_for(). Runs without a value, or with one that is not a number, come last; equal ones keep their
/// order. Throws ConfigError, which lists what there is, for a key that no run has.
void sort_runs(std::vector<RunRecord>& runs, const std::string& key, const Goals& goals);

}  // namespace sweep
