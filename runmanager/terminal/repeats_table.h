// Means over the repeats of each combination, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// A table with a line per combination of which at least two repeats are completed: the parameters `keys`
/// without the repeat, how many, and mean ± standard deviation of metrics, see run_metric(). "" if there is
/// no such combination. Columns are left out, parameters that do not vary first, until it fits into `width`,
/// in columns; 0: no limit.
std::string repeats_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          bool unicode, int width = 0);

}  // namespace sweep
