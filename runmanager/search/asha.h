// Asynchronous successive halving: a trial goes on as soon as it is among the best of its rung so far.
#pragma once

#include <cstddef>
#include <vector>

#include "runmanager/search/search_state.h"

namespace sweep {

/// The algorithm of Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020), for
/// `at_once` imaginary workers that take one unit of time for each epoch. Whoever is free sends the best
/// trial of the highest rung in which one of `eta` has not gone on yet to the next rung, or else begins the
/// next trial. So decisions depend on results alone, and need only those that precede them in imaginary time.
/// If no trial has come to the last rung when nothing else is left, the best of the highest rung goes on
/// until it is there. Immutable, thread-safe.
class Asha {
 public:
  /// `epochs`: of the rungs, rising, at least one. `eta` >= 2, `at_once` >= 1.
  Asha(std::vector<int> epochs, int eta, std::size_t at_once);

  const std::vector<int>& epochs() const { return epochs_; }

  /// Makes all decisions that known results allow, for `trials` trials and, if there are `more`, others after
  /// them. When no trial goes on any more, all that have begun have ended.
  SearchState play(std::size_t trials, bool more, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const;

 private:
  std::vector<int> epochs_;
  std::size_t eta_, at_once_;
};

}  // namespace sweep
