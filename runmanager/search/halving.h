// Successive halving: many trials are trained for few epochs, the best part of them longer, and so on. And
// hyperband: that several times, from many trials with few epochs to few trials with all of them. Asha is
// asynchronous: a trial goes on as soon as it is among the best of its rung so far.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runmanager/search/search_state.h"

namespace sweep {

/// One step of successive halving.
struct Rung {
  std::size_t trials = 0;  // how many reach it, if none fails
  int epochs = 0;          // the epoch until which each is trained

  bool operator==(const Rung&) const = default;
};

/// Synchronous successive halving of Jamieson and Talwalkar (2016): a rung is decided when all its results
/// are in, so which trials go on depends on the results alone. A value; thread-safe.
///
/// With R = max_epochs, rung k of 0 .. s has floor(trials / eta^k) trials, which are trained until epoch
/// R / eta^(s-k), rounded to the nearest, at least 1. s is the largest number with R / eta^s >= min_epochs
/// and eta^s <= trials: the first rung trains for min_epochs or up to eta times as long, longer if there are
/// few trials, the last one for max_epochs.
class Halving {
 public:
  /// trials >= 1, 1 <= min_epochs <= max_epochs and eta >= 2. `first_trial`: the number of its first one; it
  /// compares that and those that follow with each other alone.
  Halving(std::size_t trials, int min_epochs, int max_epochs, int eta, std::size_t first_trial = 0);

  std::size_t first_trial() const { return first_trial_; }
  /// The number of the trial after its last one.
  std::size_t end_trial() const { return first_trial_ + rungs_[0].trials; }
  /// At least one, in order: each with fewer trials and more epochs than the one before.
  const std::vector<Rung>& rungs() const { return rungs_; }

  /// The epochs that are trained in all, if no trial fails and each goes on from where it was.
  std::size_t total_epochs() const;

  /// Makes all decisions about its trials that known results allow. `state` has those that are there; `more`:
  /// others will follow them. Those with the smallest values go on to the next rung, the earlier one of
  /// equals: as many as it has trials, fewer only if fewer have a value.
  void play(SearchState& state, bool more, const ResultOfTrial& result,
            const ReachesTarget& reaches_target) const;

 private:
  std::size_t first_trial_;
  std::vector<Rung> rungs_;
};

/// The brackets of Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization" (JMLR
/// 18, 2018): with S the largest number for which max_epochs / eta^S >= min_epochs, one for each s = S, ...,
/// 0, with ceil((S + 1) eta^s / (s + 1)) trials whose first rung ends at max_epochs / eta^s.
///
/// `trials`, at least one: brackets are repeated in this order until they have as many; the last one has what
/// is left, at least one. None: each once.
std::vector<Halving> hyperband_brackets(int min_epochs, int max_epochs, int eta,
                                        std::optional<std::size_t> trials = std::nullopt);

/// The algorithm of Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020), for
/// `at_once` imaginary workers that take one unit of time for each epoch. Whoever is free sends the best
/// trial of the highest rung in which one of `eta` has not gone on yet to the next rung, or else begins the
/// next trial. So decisions depend on results alone, and need only those that precede them in imaginary time.
/// If no trial has come to the last rung when nothing else is left, the best of the highest rung goes on
/// until it is there.
struct Asha {
  std::vector<int> epochs;  // of the rungs, rising, at least one
  std::size_t eta = 2;      // >= 2
  std::size_t at_once = 1;  // >= 1

  /// Makes all decisions that known results allow, for `trials` trials and, if there are `more`, others after
  /// them. When no trial goes on any more, all that have begun have ended.
  SearchState play(std::size_t trials, bool more, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const;
};

}  // namespace sweep
