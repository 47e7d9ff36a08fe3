// What a search does with each of its trials next: a function of their results alone, so that it does not
// depend on how many are trained at once or on interruptions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/run_config.h"
#include "runmanager/config/search_spec.h"
#include "runmanager/records/results.h"
#include "runmanager/search/decisions.h"
#include "runmanager/search/sampler.h"

namespace sweep {

/// Whether the runs are trials that wait for the results of others: when they begin, what they are, or how
/// far they are trained. So whoever shares the sweep may train any of them.
inline bool waits_for_results(const Sweep& sweep) {
  const auto& search = sweep.search;
  return search && (has_rungs(search->method) || adds_trials(*search) || search->target || search->seconds);
}

/// What is known of a trial.
struct TrialResult {
  /// The search's metric after epochs 1, 2, …; smaller is better. None: not measured, or not a number.
  std::vector<std::optional<double>> values;
  bool ended = false;   // no further epoch will be trained
  bool failed = false;  // ended without a result
  /// With several goals, beside the last of `values`: of the other ones.
  std::vector<double> others = {};
};

/// The result of a run as it is now. If the run keeps its best epoch, a value is that of the best one so far.
/// The last value of a completed run is that of goal_values(); with several goals it is the only one.
TrialResult trial_result(const RunRecord& run, const SearchSpec& search, const RunConfig& config);

/// The last epoch that the run has, or that it continues another one after.
int reached_epoch(const RunRecord& run);

/// The value of a trial that has ended; none if it failed.
std::optional<double> final_value(const TrialResult& trial);

enum class TrialFate {
  kWaits,   // for results of others; perhaps for ever
  kTrains,  // until TrialDecision::until_epoch
  kPruned,
  kEnded,
};

struct TrialDecision {
  TrialFate fate = TrialFate::kWaits;
  int until_epoch = 0;      // from 1; of kPruned: after which it was; 0: of none
  std::string reason = "";  // of kPruned
};

/// Immutable.
class TrialSchedule {
 public:
  /// `trials`: those that are known at the start. `epochs`: of a trial that goes on to its end.
  TrialSchedule(const SearchSpec& search, std::size_t trials, int epochs);

  /// One decision per trial, in their order. `more`: others will follow them.
  std::vector<TrialDecision> decide(std::span<const TrialResult> trials, bool more = false) const;

  /// The results that the trial after `trials` is chosen from, one per trial; nothing if it cannot be chosen
  /// yet. With rungs they are those of the highest rung that has kTpeStartTrials of them, as in BOHB.
  std::optional<std::vector<KnownResult>> known_to_next(std::span<const TrialResult> trials) const;

  /// In a population: what the trial after `trials` is a copy of; nothing if that is not known yet.
  std::optional<PopulationCopy> next_copy(std::span<const TrialResult> trials) const;

  /// The first trial that has reached the target; nothing if none has, or there is no target.
  std::optional<std::size_t> winner(std::span<const TrialResult> trials) const;

  /// Epochs that are trained in all if no trial fails; of methods without rungs those of `trials`.
  double total_epochs() const { return total_epochs_; }

 private:
  /// How many trials may begin without rungs: those before, except the last `at_once` - 1, have ended.
  std::size_t may_begin(std::span<const TrialResult> trials) const;
  std::size_t first_unknown(std::size_t trial) const;
  /// The value of a trial that has this epoch or has ended. At the last epoch its final one: a program may
  /// fail after that report, or make more of them.
  std::optional<double> value_at(const TrialResult& trial, int epoch) const;
  /// Whether the trial has been trained to this epoch and to no end, so that it can wait there.
  bool pauses_at(const TrialResult& trial, int epoch) const;
  SearchState play(std::span<const TrialResult> trials, bool more) const;
  std::optional<std::vector<int>> known_epochs(std::span<const TrialResult> trials) const;
  bool reaches_target(const std::optional<double>& value) const;

  SearchSpec search_;
  int epochs_;
  std::vector<Halving> brackets_;  // of halving and hyperband
  std::optional<Asha> asha_;
  std::optional<Population> population_;
  double total_epochs_ = 0;
};

/// How many trials the search has in all, those included that are not chosen yet. `sweep` as below.
std::size_t all_trials(const Sweep& sweep);

/// Returns how many trials can be trained now; 0: the search has come to its end. `sweep`:
/// waits_for_results() holds for it. `records`: of the trials that are known, in their order.
/// `tries_failed`: failed ones are trained again.
std::size_t open_trials(const Sweep& sweep, std::span<const RunRecord> records, bool tries_failed);

}  // namespace sweep
