// Which trials of a search go on, as functions of results.
//
// Successive halving: many trials are trained for few epochs, the best part of them longer, and so on.
// Hyperband: that several times, from many trials with few epochs to few trials with all of them. Asha is
// asynchronous: a trial goes on as soon as it is among the best of its rung so far. Population based
// training: the worse members of a population go on as changed copies of the better ones.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/search/search_space.h"

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

/// The algorithm of Jaderberg et al., "Population Based Training of Neural Networks" (2017), with truncation
/// selection. After every `interval` epochs all members are ranked. The worst one in `reduction`, at least
/// one, leave the population, and for each a new trial begins as a copy: the last member's of the best one,
/// that before it of the second, and so on. What is decided after an epoch depends on the results after that
/// epoch alone.
struct Population {
  std::size_t members = 1;
  int interval = 1, epochs = 1;  // `epochs`: of a whole training
  std::size_t reduction = 2;     // >= 2

  /// Makes all decisions that known results allow, for `trials` trials. A member goes on only when the copies
  /// of its generation are among them: until then its state stays for them. Those that reach the target go on
  /// to the end.
  SearchState play(std::size_t trials, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const;

  /// How many trials there are in all, unless no member of a generation has a result.
  std::size_t total() const;
};

/// The point of a copy: each number times 0.8 or 1.2, each choice of an order replaced by a neighbour, and
/// one value in four, as choices without order always, drawn anew.
SearchPoint explored_point(const SearchDomain& domain, const SearchPoint& parent, UnitRandom& random);

}  // namespace sweep
