// A line that stays, about a run that has ended or one of its epochs.
#pragma once

#include <string>

#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// The line of a run that has ended. A completed run has its metrics (only the most important ones if the
/// terminal is narrow) and the values of its parameters for a name; any other has its reason in full. A
/// completed run that is LiveSweep::best is marked.
std::string ended_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal);

/// "loss 0.3210  acc 88.24%  val loss 0.3808  val acc 86.36%", then other metrics.
std::string metrics_text(const EpochRecord& epoch);

}  // namespace sweep
