// Follows a sweep that another process trains.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

/// Reading records takes at most this fraction of the time, as 1 / N: a thousand on a network file system
/// take a while.
inline constexpr int kRestPerReading = 10;

/// The progress of a sweep from the records of its runs, if no process knows all runs: each of several
/// processes knows only its own. Not thread-safe.
class RecordedProgress {
 public:
  /// `name`: of the sweep. The time of its progress counts from now.
  explicit RecordedProgress(std::string name) { live_.name = std::move(name); }

  /// `runs`: as list_runs() has them now. They do not tell the amount of work, so every run counts the same.
  /// `goals`: by which the best is chosen. `trials`: how many there will be at least.
  const LiveSweep& update(const std::vector<RunRecord>& runs, const Goals& goals, std::size_t trials = 0);

 private:
  LiveSweep live_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<bool> ended_;  // by run
  bool has_begun_ = false;
};

/// What is known of a sweep from elsewhere than its directory.
struct WatchedElsewhere {
  bool lives = false;  // whether it may be trained, now or later
  std::string line;    // for a person: "Slurm: 3 tasks run, 5 wait"; or ""
};

struct WatchOptions {
  Terminal terminal;      // shows the table; if it is not interactive, lines are written as things happen
  bool json = false;      // a line of JSON per change instead, as to_json(SweepStatus) has it
  bool quiet = false;     // nothing is shown
  bool tells_end = true;  // says at last how the sweep ended
  std::function<bool()> stop_requested = [] { return false; };
  std::function<void()> wait;  // a part of a second
  /// For a sweep on a cluster: asked each time.
  std::function<WatchedElsewhere()> elsewhere = [] { return WatchedElsewhere(); };
  /// Whether a sweep that lives elsewhere has nothing left to train, given its runs now. Empty: when all have
  /// ended.
  std::function<bool(const std::vector<RunRecord>&)> is_done = {};
};

/// Shows the progress of the sweep in `directory` until it ends, or until this is asked to stop. If several
/// processes train it, the progress comes from the records of its runs. If it is not running, only its state
/// is shown. Throws DataError if its files cannot be read.
void watch_sweep(const std::filesystem::path& directory, const WatchOptions& options);

}  // namespace sweep
