// The progress of a sweep from the records of its runs, if no process knows all runs: each of several
// processes knows only its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"
#include "runmanager/terminal/live_sweep.h"

namespace sweep {

/// Reading records takes at most this fraction of the time, as 1 / N: a thousand on a network file system
/// take a while.
inline constexpr int kRestPerReading = 10;

/// Whether a run with that status is final: no process trains it any further.
bool has_ended(RunStatus status);

/// Not thread-safe.
class RecordedProgress {
 public:
  /// `name`: of the sweep. The time of its progress counts from now.
  explicit RecordedProgress(std::string name);

  /// `runs`: as list_runs() has them now. They do not tell the amount of work, so every run counts the same.
  /// `goals`: by which the best is chosen.
  const LiveSweep& update(const std::vector<RunRecord>& runs, const Goals& goals);

 private:
  LiveSweep live_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<bool> ended_;  // by run
};

}  // namespace sweep
