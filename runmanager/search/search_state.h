// What a search has decided of its trials.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sweep {

/// What is known of a trial.
struct KnownResult {
  bool is_known = false;
  std::optional<double> value = std::nullopt;  // if it is known, finite; none: it failed
};

/// The result of a trial after an epoch, from 1; smaller is better.
using ResultOfTrial = std::function<KnownResult(std::size_t trial, int epoch)>;
/// Once it holds for a result, no trial begins, and only those go on for which it does.
using ReachesTarget = std::function<bool(double)>;

/// A trial that goes on from the state of another.
struct PopulationCopy {
  std::size_t parent = 0;
  int epoch = 0;  // after which
};

/// Every decision that known results allow. Vectors have one element per trial.
struct SearchState {
  explicit SearchState(std::size_t trials) : until(trials), ended(trials), used(trials) {}

  std::vector<int> until;              // the epoch that it may be trained to; 0: none yet
  std::vector<std::string> ended;      // why it goes no further than `until`; "": it may
  std::vector<int> used;               // of asha: the last epoch whose result was used; 0: none
  bool wants_trial = false;            // of asha: the next trial, which is not there yet, begins now
  std::vector<PopulationCopy> copies;  // of a population: the first one is the trial after the first members
};

}  // namespace sweep
