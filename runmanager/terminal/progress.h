// The progress of a sweep while it trains.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_event.h"
#include "runmanager/terminal/live_sweep.h"

namespace sweep {

/// Follows the progress of a sweep, and shows it in the way of the derived class. Runs count from 1. A run
/// may end and begin again, after a retry or at the next rung of a search: it counts once. Showing never
/// throws. Not thread-safe.
class Progress {
 public:
  /// `clock` returns seconds and never goes back. `sweep` is the sweep's name, and `runs` the number of its
  /// runs, finished ones included. `work` is the sum of training samples times epochs over the runs to be
  /// trained, from which the time left is estimated.
  Progress(std::function<double()> clock, const std::string& sweep, std::size_t runs, double work);
  virtual ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A worker is about to train run `number`. Not necessary before report(); it tells the run's parameters.
  void start_run(std::size_t number, const RunRecord& run);
  /// Shows the training of run `number`. Its end is told by end_run(), as another attempt may follow.
  void report(std::size_t number, const RunEvent& event);
  /// Shows how run `number` ended. Also for a run that never began, because it was skipped or failed early.
  void end_run(std::size_t number, const RunRecord& run);
  /// Run `number` waits, and may begin again: it is not shown meanwhile.
  void pause_run(std::size_t number);
  /// Counts `count` runs of an earlier start as finished.
  void keep_runs(std::size_t count);
  /// How the best run is chosen from now on; empty before it is called. Completed by default_goals().
  void judge_by(const Goals& goals) { goals_ = goals; }
  /// Includes a run of an earlier start in the choice of the best one.
  void consider(const RunRecord& run);
  /// Shows that time has passed. To be called several times a second, whether or not anything happens.
  void pass_time();

  /// Shows a message even if nothing else is shown.
  virtual void message(std::string_view line) = 0;

  /// All that is known now.
  const LiveSweep& state();

 protected:
  virtual void show_kept(std::size_t count) = 0;
  virtual void show_begin(const LiveRun& run) = 0;
  virtual void show_epoch(const LiveRun& run, const EpochRecord& epoch) = 0;
  virtual void show_end(std::size_t number, const RunRecord& run) = 0;
  /// Something may have changed. Called for every batch.
  virtual void show_change(double now) = 0;

  double now() const { return clock_(); }

 private:
  class ActiveRun;
  class LiveRate;
  struct End {
    std::optional<RunStatus> status;  // none: it has paused
    double work = 0;                  // counted in LiveSweep::ended_work
  };
  void leave_run(std::size_t number, std::optional<RunStatus> status);
  void forget_end(std::size_t number);
  ActiveRun& active_run(std::size_t number);

  std::function<double()> clock_;
  double start_;  // by clock_
  Goals goals_;
  LiveSweep state_;
  std::map<std::size_t, std::unique_ptr<ActiveRun>> active_;  // by the run's number
  std::map<std::size_t, End> ended_;                          // likewise
};

}  // namespace sweep
