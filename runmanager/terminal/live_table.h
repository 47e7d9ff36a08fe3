// How a sweep that is being trained looks on a terminal.
#pragma once

#include <string>
#include <vector>

#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// The sweep as lines that change: its own with a bar, a table of the runs in training, and the best run so
/// far. No wider than the terminal, and at most a quarter of it high; the least informative columns are left
/// out first: parameters that are the same in all runs.
std::vector<std::string> live_table(const LiveSweep& sweep, const Terminal& terminal);

}  // namespace sweep
