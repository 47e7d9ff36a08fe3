// The progress of a sweep while it trains.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/engine/engine.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_event.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/terminal.h"

namespace sweep {

struct ProgressOptions {
  Terminal terminal = {};              // where it is shown
  std::function<double()> clock = {};  // returns seconds, and never goes back
  std::string sweep = {};              // its name
  std::size_t runs = 0;                // of the sweep, finished ones included
  double work = 0;     // training samples times epochs, over all runs; from it the time left is estimated
  bool json = false;   // for programs
  bool quiet = false;  // only messages and failed runs are shown
};

/// Follows the progress of a sweep, and shows it in the way of the derived class. Runs count from 1. A run
/// may end and begin again, after a retry or at the next rung of a search: it counts once. Showing never
/// throws. Not thread-safe.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  virtual ~Progress() = default;
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
  /// `work` of run `number` is done that this start did not do: before it (`is_earlier`), or meanwhile.
  void know_work(std::size_t number, double work, bool is_earlier);
  /// The runs take more `work` than was known.
  void add_work(double work) { state_.work += work; }
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
  virtual void show_begin(const LiveRun&) {}
  virtual void show_epoch(const LiveRun& run, const EpochRecord& epoch) = 0;
  virtual void show_end(std::size_t number, const RunRecord& run) = 0;
  /// Something may have changed. Called for every batch. `now`: by the clock.
  virtual void show_change(double) {}

  const ProgressOptions options_;

 private:
  // What is counted of a run that is trained, in addition to its LiveRun.
  struct Meter {
    double start = 0;
    std::string phase;  // in work; "" while it trains
    double phase_since = 0;
    int epoch = 0;  // in work, from 1
    bool has_classes = true;
    Totals totals = {};  // of the epoch
    // Since the latest speeds, which are those of a second or more of training.
    double batches = 0, samples = 0, seconds = 0;
    std::optional<double> trains_since = {};  // not yet part of `seconds`; none while it does not train
  };
  // What is counted of a run that is not trained, or has not told yet how far it is.
  struct End {
    std::optional<RunStatus> status = {};  // none: it has paused, or begins
    double work = 0;                       // in LiveSweep::ended_work
  };
  LiveRun& active_run(std::size_t number);
  void take(LiveRun& run, Meter& meter, const RunPlan& plan);
  void take(LiveRun& run, Meter& meter, const TrainedBatches& batches);
  void take(LiveRun& run, Meter& meter, const RunPhase& phase);
  void take(LiveRun& run, Meter& meter, const EpochRecord& epoch);
  void take(LiveRun&, Meter&, const auto&) {}  // end_run() tells of the ends.
  void leave_run(std::size_t number, std::optional<RunStatus> status);
  void set_end(std::size_t number, const End& end);

  double start_;  // by the clock
  Goals goals_;
  LiveSweep state_;
  std::map<std::size_t, Meter> meters_;  // of LiveSweep::active
  std::map<std::size_t, End> ended_;     // by the run's number
};

/// Shows the progress to people: on an interactive terminal live_table() is redrawn at most 10 times a
/// second, and finished runs scroll away above it; elsewhere a line is written per epoch. Calls between
/// redraws only read the clock. `json`: writes a line per event, each an object with "event":
///   "begin"   a run begins: "run" (its name), "number" (from 1), "runs" (of the sweep), "epochs",
///             "trained_epochs" (by earlier starts), "batches" and "samples" (per epoch)
///   "epoch"   "run", and what run.json has of an epoch
///   "end"     "run", "number", "status", "metrics"; "error", "stopped", "run_seconds" if there are any
///   "kept"    "runs": how many an earlier start has finished
///   "message" "text"
std::unique_ptr<Progress> make_progress(ProgressOptions options);

/// The line of JSON of a message.
std::string json_message(std::string_view text);

}  // namespace sweep
