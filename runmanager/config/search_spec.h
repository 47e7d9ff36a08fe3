// How a sweep chooses what it trains; the sweep file's "search".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "runmanager/config/metrics.h"
#include "runmanager/search/decisions.h"
#include "runmanager/search/sampler.h"

namespace sweep {

struct RunConfig;

/// The key of a run's complete settings that has the runs of a population whose training it continues, see
/// recorded_config.h. No other runs have it.
inline constexpr const char* kLineageKey = "lineage";

enum class SearchMethod {
  kGrid,        // every combination, to its last epoch
  kRandom,      // random points of the space
  kTpe,         // points that earlier results make likely to be good
  kHalving,     // every combination, or random points; the worse part is ended early
  kHyperband,   // several such halvings, of many short and of few long trials
  kAsha,        // halving that promotes a trial as soon as it is among the best so far
  kPopulation,  // the worse ones are replaced by changed copies of the better ones, again and again
};

inline const EnumNames<SearchMethod>& search_method_names() {
  static const EnumNames<SearchMethod> names(
      "method", {"grid", "random", "tpe", "halving", "hyperband", "asha", "population"});
  return names;
}

struct SearchSpec {
  SearchMethod method = SearchMethod::kGrid;
  std::size_t trials = 0;  // 0: all there are, or as many as the method has by itself
  bool metric_given = false;
  /// A single one counts at a trial's last epoch; where keeps_best(): at the one that is kept. With several,
  /// each is the number of run_metric(), and methods have no rungs.
  Goals goals = {asked_goal("Loss/validation", false)};
  std::uint64_t seed = 0;
  bool samples_tpe = false;  // of methods with rungs: points are those of tpe, not random ones
  /// Trial t is chosen, and begun if there is a target, when trials 0 .. t - at_once have ended. So the
  /// trials do not depend on how many run at once.
  std::size_t at_once = 4;
  int min_epochs = 1;                // of methods with rungs: the shortest training
  int reduction = 3;                 // one trial in this many goes on; of a population is replaced
  int interval = 1;                  // of a population: epochs between replacements
  std::optional<double> target;      // no trial begins once this is reached
  std::optional<double> seconds;     // nor once the times of those before add up to this
  std::vector<SearchPoint> points;   // the first trials; dimensions without a value are drawn
  std::vector<Observation> learned;  // results of other sweeps; smaller is better
  std::string origin;                // its place in the file, for errors that are found later
};

/// Whether trials are compared at rungs, and the worse ones of each are ended there.
inline bool has_rungs(SearchMethod method) {
  return method == SearchMethod::kHalving || method == SearchMethod::kHyperband ||
         method == SearchMethod::kAsha;
}

/// Whether trials are compared before their last epoch, so that some never come to it.
inline bool compares_on_the_way(SearchMethod method) {
  return has_rungs(method) || method == SearchMethod::kPopulation;
}

/// Whether a sampler chooses the points of later trials from results.
inline bool chooses_points(const SearchSpec& search) {
  return search.method == SearchMethod::kTpe || search.samples_tpe;
}

/// Whether trials are added while others are trained.
inline bool adds_trials(const SearchSpec& search) {
  return chooses_points(search) || search.method == SearchMethod::kPopulation;
}

/// The population of `members` trials of `epochs` epochs.
Population population_of(const SearchSpec& search, std::size_t members, int epochs);

/// The halvings of halving and hyperband that begin with `trials` trials of `epochs` epochs; else none.
/// Hyperband has as many trials as it says itself.
std::vector<Halving> search_brackets(const SearchSpec& search, std::size_t trials, int epochs);

/// How many trials there are, unless the space has fewer points. `epochs`: of a trial.
std::size_t total_trials(const SearchSpec& search, int epochs);
/// How many points are drawn before the first result is known.
std::size_t points_at_start(const SearchSpec& search, int epochs);

/// The goals of `part`, the "search" or "stop" of a sweep file; at least one. What it does not say is the
/// "objective" of a person's own program, whose "mode" is that of the file, and the better end of other
/// metrics.
Goals goals_in(const nlohmann::ordered_json& part, const nlohmann::ordered_json& file);

/// What proposes the points of the search.
Sampler make_sampler(const SearchSpec& search, const SearchDomain& domain);

/// What the trials of a sweep are drawn from, where they are points of a space.
struct TrialSource {
  SearchDomain domain;
  std::vector<SearchPoint> points;  // of Sweep::runs, in their order; each once for all its repeats
  /// The run of trial `index`, from 0, at `point`. Throws ConfigError with every mistake, if the values do
  /// not go together. Not thread-safe.
  std::function<RunConfig(std::size_t index, const SearchPoint& point)> make_run;
};

}  // namespace sweep
