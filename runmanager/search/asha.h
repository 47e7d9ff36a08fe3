// Asynchronous successive halving: a trial goes on as soon as it is among the best of its rung so far.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace sweep {

/// What is known of a trial.
struct KnownResult {
  bool is_known = false;
  std::optional<double> value = std::nullopt;  // if it is known; none: it failed
};

/// The order of decisions of asha, see Asha. All vectors have one element per trial.
struct AshaState {
  std::vector<std::size_t> begun;  // rungs that the trial was sent to: trained to begun - 1; 0: to none yet
  std::vector<std::size_t> used;   // rungs whose results decisions were made from
  bool wants_trial = false;        // the next trial, which is not there yet, begins now
  bool is_over = false;            // no trial goes on any more
};

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

  /// The result of a trial at a rung; smaller is better.
  using Result = std::function<KnownResult(std::size_t trial, std::size_t rung)>;

  /// Makes all decisions that known results allow, for `trials` trials and, if there are `more`, others after
  /// them. `reaches_target`: once it holds for a result, no trial begins, and only those go on for which it
  /// does.
  AshaState play(std::size_t trials, bool more, const Result& result,
                 const std::function<bool(double)>& reaches_target) const;

 private:
  std::vector<int> epochs_;
  std::size_t eta_, at_once_;
};

}  // namespace sweep
