// What a search does with each of its trials next: a function of their results alone, so that it does not
// depend on how many are trained at once or on interruptions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/config/search_spec.h"
#include "runmanager/records/results.h"
#include "runmanager/search/hyperband.h"

namespace sweep {

/// Whether a trial waits for the results of others: when it begins, what it is, or how far it is trained.
inline bool waits_for_results(const SearchSpec& search) {
  return has_rungs(search.method) || search.method == SearchMethod::kTpe || search.target || search.seconds;
}

/// What is known of a trial.
struct TrialResult {
  /// The search's metric after epochs 1, 2, …; smaller is better. None: not measured, or not a number.
  std::vector<std::optional<double>> values;
  bool ended = false;   // no further epoch will be trained
  bool failed = false;  // ended without a result
};

/// The result of a run as it is now. Where `best_counts`, a value is that of the best epoch so far.
TrialResult trial_result(const RunRecord& run, const SearchSpec& search, bool best_counts);

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
  int until_epoch = 0;      // of kTrains: from 1
  std::string reason = "";  // of kPruned
};

/// Immutable.
class TrialSchedule {
 public:
  /// `trials`: those that are known at the start. `epochs`: of a trial that goes on to its end. Throws
  /// ConfigError for numbers that go not together.
  TrialSchedule(const SearchSpec& search, std::size_t trials, int epochs);

  /// One decision per trial, in their order.
  std::vector<TrialDecision> decide(std::span<const TrialResult> trials) const;

  /// Whether trial `trial` may begin, if it is not there yet: it may be chosen from the results of those
  /// that known() says.
  bool may_begin(std::size_t trial, std::span<const TrialResult> trials) const;
  /// How many of the first trials count when trial `trial` is chosen; the others are as if they were not
  /// ended.
  std::size_t known(std::size_t trial) const;

  /// The first trial that has reached the target; nothing if none has, or there is no target.
  std::optional<std::size_t> winner(std::span<const TrialResult> trials) const;

  /// Epochs that are trained in all if no trial fails; of methods without rungs those of `trials`.
  double total_epochs() const { return total_epochs_; }

 private:
  void decide(const HyperbandBracket& bracket, std::span<const TrialResult> trials,
              std::vector<TrialDecision>& decisions) const;
  bool reaches_target(const std::optional<double>& value) const;

  SearchSpec search_;
  int epochs_;
  std::vector<HyperbandBracket> brackets_;  // of methods with rungs
  double total_epochs_ = 0;
};

}  // namespace sweep
