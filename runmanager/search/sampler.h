// Proposes the points of a search, one trial after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "runmanager/search/search_space.h"

namespace sweep {

class ParzenEstimator;

/// An earlier trial.
struct Observation {
  SearchPoint point;              // as suggest() returned it, or any other with as many dimensions
  std::optional<double> value{};  // what is minimised; none: not known yet. Not finite: as if it had failed
  bool failed = false;            // it has no value and never will; counts as worse than every value
  std::vector<double> others{};   // with several goals, besides `value`: those of the others
};

/// The first trials of a sampler that learns which are spread over the space without regard to values.
inline constexpr std::size_t kTpeStartTrials = 10;

/// How points are proposed.
struct SamplerOptions {
  std::uint64_t seed = 0;
  /// false: independent random points, whatever the earlier ones gave. true: by the tree-structured Parzen
  /// estimator, which proposes what is likely among the best and unlikely among the other earlier points.
  /// Trials without a value yet count among the others, so that no two look at one place at once, as do those
  /// that failed. The first kTpeStartTrials, and all while fewer have ended, are spread evenly. With several
  /// goals the best are those of best_of_fronts().
  bool learns = false;
  /// Results from elsewhere, which count like those of ended trials, except that their points may be
  /// proposed; they may lack dimensions.
  std::vector<Observation> learned{};
  /// The first trials are at these points, in their order. Dimensions that one has no value for are drawn at
  /// random, if possible so that those that it has exist. If none of 100 such points is new and allowed, the
  /// trial is as others are.
  std::vector<SearchPoint> points{};
};

/// Proposes points. suggest() is a pure function of what the sampler was made of, the trial's number and the
/// earlier trials: the same on every machine and however often it is called. Safe to call from several
/// threads, as the functions of the domain are.
class Sampler {
 public:
  Sampler(SearchDomain domain, SamplerOptions options);

  /// The point of trial number `trial`, from 0, after `earlier` ones in the order of their numbers. Never one
  /// of theirs. None if no other point is left: exactly then in a finite space (see is_enumerable()), else
  /// if thousands of random points were all left out or known.
  std::optional<SearchPoint> suggest(std::size_t trial, std::span<const Observation> earlier) const {
    return proposed(trial, {earlier});
  }

  /// The points of the first `count` trials, each as suggest() gives it while none before it has a value;
  /// fewer if no other point is left.
  std::vector<SearchPoint> first_points(std::size_t count) const;

 private:
  struct Earlier {
    std::span<const Observation> trials;
    /// Their points, if many trials are drawn. To make this for a single one takes longer than a few
    /// look-ups.
    const std::set<SearchPoint>* points = nullptr;
  };

  UnitRandom random(std::size_t trial, SearchDraw use) const { return {options_.seed, trial, use}; }
  /// The point at a place of the unit cube, one number per dimension; without dimensions that it does not
  /// have.
  SearchPoint at(std::span<const double> unit) const;
  std::optional<SearchPoint> proposed(std::size_t trial, const Earlier& earlier) const;
  /// Whether a point may be proposed: it is not left out and differs from all `earlier` ones.
  bool is_new(const SearchPoint& point, const Earlier& earlier) const;
  /// A new point with the values that `given` has, all if possible, the others drawn; none if `draws` of them
  /// give none.
  std::optional<SearchPoint> completed(const SearchPoint& given, int draws, UnitRandom& drawn,
                                       const Earlier& earlier) const;
  /// A new random point, each as likely as its cells are large; none as suggest() says.
  std::optional<SearchPoint> random_point(UnitRandom drawn, const Earlier& earlier) const;
  std::optional<SearchPoint> tpe_point(std::size_t trial, const Earlier& earlier) const;
  std::optional<SearchPoint> start_point(std::size_t trial, const Earlier& earlier) const;
  std::optional<SearchPoint> best_candidate(std::size_t trial, const Earlier& earlier,
                                            const ParzenEstimator& good, const ParzenEstimator& bad) const;

  SearchDomain domain_;
  SamplerOptions options_;
  std::vector<UnitScale> scales_;
  bool enumerable_;
};

}  // namespace sweep
