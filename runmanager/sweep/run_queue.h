// The runs that the scheduler takes to train, when they can begin.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/trial_runs.h"

namespace sweep {

/// How a sweep is trained that several processes share.
struct SharingOptions {
  std::size_t slots = 1;                             // runs at once
  bool leaves = false;                               // whether nothing is waited for that others train
  std::function<bool(const RunConfig&)> takes = {};  // what may be locked; empty: all
  std::string start = {};                            // SweepDirectory::start()
  /// What the files of a run say. Throws ConfigError if they are those of a run with other settings.
  std::function<RunFate(std::size_t run)> fate;
};

/// Hands out the runs of a sweep, or the trials of a search as it chooses them. In a shared sweep it locks
/// runs one after another, as slots become free, also those of others that have died: a run goes on from its
/// checkpoint, a trial before anything that depends on it is decided. Not thread-safe.
class RunQueue {
 public:
  /// `runs`: all that may have to be trained, in the order of the sweep; trials may be added. `trials`: of a
  /// search whose trials wait for results; null: all can begin. What a search decides is a function of its
  /// results alone, so any number of processes train the same trials. `sharing`: nothing if only this process
  /// trains. References must outlive the object.
  RunQueue(std::deque<ScheduledRun>& runs, SweepRecorder& recorder, TrialRuns* trials = nullptr,
           std::optional<SharingOptions> sharing = {})
      : runs_(runs), recorder_(recorder), trials_(trials), sharing_(std::move(sharing)) {}

  /// The runs that can begin now and were not handed out before, in the order in which they should. Called at
  /// the start, and after each end() until the sweep is asked to stop. Each stays where it is until its end.
  std::vector<const ScheduledRun*> take_ready();
  /// No further attempt to train the run follows. If it has paused, it may be handed out again.
  void end(std::size_t run);

  /// Whether runs that were handed out and wait for a free slot may still begin. Once false, it stays so, and
  /// end() follows for each of them.
  bool may_begin() const { return trials_ == nullptr || trials_->has_time(); }
  /// Whether take_ready() is to be called again though no run has ended, as others than the caller decide
  /// what can begin.
  bool may_have_more() const;
  /// Whether the run is the caller's to train and to write about.
  bool owns(std::size_t run) const;

  /// In a shared sweep: whether runs are left that have not ended, as far as is known.
  bool has_open() const;
  /// Takes over the records of all runs that others have trained, if they share the sweep. Returns how many
  /// of them have ended.
  std::size_t collect();

 private:
  using Clock = std::chrono::steady_clock;
  bool look();
  bool lock(ScheduledRun& run);
  bool collect(std::size_t run);

  std::deque<ScheduledRun>& runs_;
  SweepRecorder& recorder_;
  TrialRuns* const trials_;
  const std::optional<SharingOptions> sharing_;
  bool has_begun_ = false;  // all of `runs_` were handed out at once
  // In a shared sweep:
  std::deque<std::size_t> candidates_;  // to be trained, and not tried to lock since the last look
  std::size_t active_ = 0;              // handed out, and not ended
  bool others_may_end_ = false;         // trials that this process cannot train now
  Clock::time_point look_begin_, next_look_;
};

}  // namespace sweep
