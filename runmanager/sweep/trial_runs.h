// The runs of a search, handed out as their results tell which are worth it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/config/run_config.h"
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

}  // namespace sweep
