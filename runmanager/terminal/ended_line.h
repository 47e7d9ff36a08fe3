// What is said of a run that has ended, or of one of its epochs, in a line that stays.
#pragma once

#include <string>

#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// The line of a run that has ended. A completed run has its metrics, of which the most important ones are
/// left if the terminal is narrow, and the values of its parameters for a name; any other has its reason in
/// full. A completed run that is LiveSweep::best is marked.
std::string ended_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal);

/// "loss 0.3210  acc 88.24%  val loss 0.3808  val acc 86.36%", then other metrics.
std::string metrics_text(const EpochRecord& epoch);

}  // namespace sweep
