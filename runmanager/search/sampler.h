// Proposes the points of a search, one trial after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runmanager/search/search_space.h"

namespace sweep {

/// An earlier trial.
struct Observation {
  SearchPoint point;              // as suggest() returned it, or any other with as many dimensions
  std::optional<double> value{};  // what is minimised; none: not known yet. Not finite: as if it had failed
  bool failed = false;            // it has no value and never will; counts as worse than every value
  std::vector<double> others{};   // with several goals, besides `value`: those of the others
};

/// Proposes points. suggest() is a pure function of what the sampler was made of, the trial's number and the
/// earlier trials: the same on every machine and however often it is called. Safe to call from several
/// threads.
class Sampler {
 public:
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  virtual ~Sampler() = default;

  /// The point of trial number `trial`, from 0, after `earlier` ones in the order of their numbers. Never one
  /// of theirs. None if no other point is left: exactly then in a finite space (see number_of_points()), else
  /// if thousands of random points were all left out or known.
  virtual std::optional<SearchPoint> suggest(std::size_t trial,
                                             std::span<const Observation> earlier) const = 0;
};

/// Independent random points, whatever the earlier ones gave. Throws what check_domain() throws.
std::unique_ptr<Sampler> make_random_sampler(SearchDomain domain, std::uint64_t seed);

/// The first trials of make_tpe_sampler() that are spread over the space without regard to values.
inline constexpr std::size_t kTpeStartTrials = 10;

/// Tree-structured Parzen estimator: proposes what is likely among the best and unlikely among the other
/// earlier points. Trials without a value yet count among the others, so that no two look at one place at
/// once, as do those that failed. The first kTpeStartTrials, and all while fewer have ended, are spread
/// evenly. With several goals the best are those of best_of_fronts(). `learned`: results from elsewhere,
/// which count like those of ended trials, except that their points may be proposed; they may lack
/// dimensions. Throws what check_domain() throws.
std::unique_ptr<Sampler> make_tpe_sampler(SearchDomain domain, std::uint64_t seed,
                                          std::vector<Observation> learned = {});

/// The first trials are at `points`, in their order; the others are those of `rest`. Dimensions that one of
/// `points` has no value for are drawn at random. If none of 100 such points is new and allowed, the trial is
/// one of `rest`. Throws what check_domain() throws.
std::unique_ptr<Sampler> make_point_sampler(SearchDomain domain, std::uint64_t seed,
                                            std::vector<SearchPoint> points, std::unique_ptr<Sampler> rest);

}  // namespace sweep
