// The runs that the scheduler takes to train, when they can begin; those of a search as their results tell
// which are worth it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/search/sampler.h"
#include "runmanager/sweep/run_executor.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/trial_schedule.h"

namespace sweep {

struct TrialRunsOptions {
  /// Adds the run of a new trial, the next of the sweep, to its records. Returns it, unless it need not or
  /// cannot be trained; its record then says how it ended.
  std::function<std::optional<ScheduledRun>(RunConfig config)> add;
  /// Whether an earlier start has trained the run of a trial.
  std::function<bool(const RunConfig& config)> is_there;
  /// Ends a run that has paused, or was left by an earlier start, as pruned, unless that cannot be done now.
  std::function<void(std::size_t run, const std::string& reason)> prune;
  /// Keeps the state of trial `parent` after `epoch`, its last one so far, for a copy of it. Returns false if
  /// that state is lost; the parent's record then has fewer epochs. Also if it was asked to stop meanwhile.
  std::function<bool(std::size_t parent, int epoch, const RunConfig& copy)> keep_start;
};

/// What a search has come to.
struct SearchEnd {
  std::string reason;                 // why no further trial began; "" if all were tried
  std::optional<std::size_t> winner;  // the trial that reached the target
};

/// See RunQueue, which has methods of the same names.
class TrialRuns {
 public:
  /// `sweep.search` is set, and the source of trials if some are added while others are trained. `runs`:
  /// those of the sweep's trials that have to be trained. References must outlive the object.
  TrialRuns(const Sweep& sweep, std::deque<ScheduledRun>& runs, const SweepRecorder& recorder,
            TrialRunsOptions options);

  std::vector<const ScheduledRun*> take_ready();
  void end(std::size_t run) { active_.erase(run); }
  /// Whether the time that the search may take is not over.
  bool has_time() const;

  SearchEnd outcome();

 private:
  void read_results();
  /// Whether further trials may be chosen.
  bool has_more() const { return adds_trials(search_) && !is_exhausted_ && results_.size() < total_; }
  /// Chooses the next trial if that can be done now; returns whether there is one more.
  bool add_trial();
  /// The same of a population.
  bool add_copy();
  /// Whether a trial may be added: those of earlier starts also if the search has no time for more.
  bool may_add(const RunConfig& config) const { return has_time() || options_.is_there(config); }
  void add(RunConfig config, SearchPoint point);

  const Sweep& sweep_;
  const SearchSpec& search_;
  std::deque<ScheduledRun>& runs_;
  const SweepRecorder& recorder_;
  TrialRunsOptions options_;
  TrialSchedule schedule_;
  std::size_t total_;                      // of the trials, if the space has as many points
  std::optional<Sampler> sampler_;         // of methods that choose trials while others are trained
  std::vector<Observation> observations_;  // the trials' points, and the values that are known
  std::vector<TrialResult> results_;       // of the trials
  /// Status and number of epochs of a trial that nobody trains, when its result was read: it need not be read
  /// again before they change. Nothing for others.
  using Reading = std::pair<RunStatus, std::size_t>;
  std::vector<std::optional<Reading>> readings_;
  std::set<std::size_t> active_;  // handed out, and not ended
  bool is_exhausted_ = false;     // there is no other point
};

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
