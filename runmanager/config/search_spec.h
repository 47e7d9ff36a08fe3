// How a sweep chooses what it trains; the sweep file's "search".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/search/hyperband.h"
#include "runmanager/search/search_space.h"

namespace sweep {

struct RunConfig;

enum class SearchMethod {
  kGrid,       // every combination, to its last epoch
  kRandom,     // random points of the space
  kTpe,        // points that earlier results make likely to be good
  kHalving,    // every combination, or random points; the worse part is ended early
  kHyperband,  // several such halvings, of many short and of few long trials
};

struct SearchSpec {
  SearchMethod method = SearchMethod::kGrid;
  std::size_t trials = 0;  // 0: all there are, or as many as the method has by itself
  bool metric_given = false;
  std::string
      metric;  // a tag of watchable_metrics(), at a trial's last epoch; where keeps_best(): at its best
  bool largest_is_best = false;
  std::uint64_t seed = 0;
  /// Trial t is chosen, and begun if there is a target, when trials 0 .. t - at_once have ended. So the
  /// trials do not depend on how many run at once.
  std::size_t at_once = 4;
  int min_epochs = 1;             // of halving and hyperband: the shortest training
  int reduction = 3;              // one trial in this many goes on
  std::optional<double> target;   // no trial begins once this is reached
  std::optional<double> seconds;  // nor once the times of those before add up to this
  std::string origin;             // its place in the file, for errors that are found later
};

/// Whether trials are ended before their last epoch.
inline bool has_rungs(SearchMethod method) {
  return method == SearchMethod::kHalving || method == SearchMethod::kHyperband;
}

/// The halvings of a method with rungs that begins with `trials` trials of `epochs` epochs; else none.
/// Hyperband has as many trials as it says itself. Throws ConfigError for numbers that go not together.
std::vector<HyperbandBracket> search_brackets(const SearchSpec& search, std::size_t trials, int epochs);

/// How many points are drawn before the first result is known. `epochs`: of a trial.
std::size_t points_at_start(const SearchSpec& search, int epochs);

/// What the trials of a sweep are drawn from, where they are points of a space.
struct TrialSource {
  SearchDomain domain;
  std::vector<SearchPoint> points;  // of Sweep::runs, in their order
  /// The run of trial `index`, from 0, at `point`. Throws ConfigError with every mistake, if the values do
  /// not go together. Not thread-safe.
  std::function<RunConfig(std::size_t index, const SearchPoint& point)> make_run;
};

}  // namespace sweep
