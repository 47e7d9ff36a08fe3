// How a sweep that is being trained looks on a terminal: lines that change, and lines that stay.
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

/// The line of a run that has ended. A completed run has its metrics (only the most important ones if the
/// terminal is narrow) and the values of its parameters for a name; any other has its reason in full. A
/// completed run that is LiveSweep::best is marked.
std::string ended_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal);

/// The line of an epoch in a log: "[3/16] lr=0.1  epoch 2/10  loss 0.3210  1.4 s  12.3k img/s".
std::string epoch_line(const LiveSweep& sweep, const LiveRun& run, const EpochRecord& epoch);

/// "loss 0.3210  acc 88.24%  val loss 0.3808  val acc 86.36%", then other metrics.
std::string metrics_text(const EpochRecord& epoch);

}  // namespace sweep
