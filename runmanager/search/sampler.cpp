#include "runmanager/search/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "runmanager/search/pareto.h"
#include "runmanager/search/parzen_estimator.h"

namespace sweep {
namespace {

constexpr int kDrawsOfGivenPoint = 100;  // of what it leaves open, before another point is drawn
constexpr int kDraws = 100;              // before all points of a small space are listed
constexpr int kDrawsOfLarge = 10'000;    // before a space that cannot be listed is given up

// The tree-structured Parzen estimator of Bergstra et al., "Algorithms for Hyper-Parameter Optimization"
// (NIPS 2011), with kernels over all dimensions at once as of Falkner et al., "BOHB" (ICML 2018), and the
// choices that Watanabe compares in "Tree-Structured Parzen Estimator" (2023).
constexpr double kGoodPart = 0.15, kGoodPartOfSeveralGoals = 0.1;  // of the trials that ended, rounded up
constexpr std::size_t kMaxGood = 25;                               // also for many trials
// The newest ones: they lie where candidates do, and the cost is bounded.
constexpr std::size_t kMaxOthers = 1000;
constexpr std::size_t kCandidates = 24;  // the best one is proposed
constexpr std::size_t kMaxDraws = 240;   // to get that many candidates that are new

bool has_value(const Observation& trial) {
  return !trial.failed && trial.value && std::isfinite(*trial.value) &&
         std::ranges::all_of(trial.others, [](double value) { return std::isfinite(value); });
}

// Returns the best `count` of `trials`, the best one first.
std::vector<std::size_t> best_of(std::vector<std::size_t> trials, std::span<const Observation* const> all,
                                 std::size_t count) {
  const auto end = trials.begin() + static_cast<std::ptrdiff_t>(count);
  if (all[trials[0]]->others.empty()) {
    std::ranges::partial_sort(trials, end, {}, [&](std::size_t i) { return std::pair(*all[i]->value, i); });
    trials.erase(end, trials.end());
    return trials;
  }
  std::vector<GoalValues> values;
  for (const std::size_t i : trials) {
    values.push_back({*all[i]->value});
    values.back().insert(values.back().end(), all[i]->others.begin(), all[i]->others.end());
  }
  std::vector<std::size_t> best = best_of_fronts(values, count);
  for (std::size_t& place : best) place = trials[place];
  return best;
}

// The best one weighs most: logarithmic ranks, with a mean of 1.
std::vector<WeightedPoint> by_rank(std::span<const std::size_t> good,
                                   std::span<const Observation* const> all) {
  std::vector<WeightedPoint> points;
  double sum = 0;
  for (std::size_t rank = 0; rank < good.size(); ++rank) {
    const double weight =
        std::log(static_cast<double>(good.size() + 1)) - std::log(static_cast<double>(rank + 1));
    points.push_back({.point = &all[good[rank]]->point, .weight = weight});
    sum += weight;
  }
  for (WeightedPoint& point : points) point.weight *= static_cast<double>(points.size()) / sum;
  return points;
}

std::vector<WeightedPoint> newest_others(std::span<const std::size_t> good,
                                         std::span<const Observation* const> all) {
  std::vector<char> is_good(all.size(), 0);
  for (const std::size_t i : good) is_good[i] = 1;
  std::vector<WeightedPoint> points;
  for (std::size_t i = all.size(); i-- > 0 && points.size() < kMaxOthers;)
    if (!is_good[i]) points.push_back({.point = &all[i]->point});
  std::ranges::reverse(points);
  return points;
}

}  // namespace

Sampler::Sampler(SearchDomain domain, SamplerOptions options)
    : domain_(std::move(domain)),
      options_(std::move(options)),
      scales_(domain_.dimensions.begin(), domain_.dimensions.end()),
      enumerable_(is_enumerable(domain_)) {}

std::vector<SearchPoint> Sampler::first_points(std::size_t count) const {
  std::vector<Observation> trials;
  std::set<SearchPoint> points;
  while (trials.size() < count) {
    std::optional<SearchPoint> point = proposed(trials.size(), {trials, &points});
    if (!point) break;
    points.insert(*point);
    trials.push_back({.point = *std::move(point)});
  }
  std::vector<SearchPoint> drawn(trials.size());
  std::ranges::transform(trials, drawn.begin(), [](Observation& trial) { return std::move(trial.point); });
  return drawn;
}

std::optional<SearchPoint> Sampler::proposed(std::size_t trial, const Earlier& earlier) const {
  if (trial < options_.points.size()) {
    UnitRandom drawn = random(trial, SearchDraw::kPoint);
    if (auto point = completed(options_.points[trial], kDrawsOfGivenPoint, drawn, earlier)) return point;
  }
  return options_.learns ? tpe_point(trial, earlier)
                         : random_point(random(trial, SearchDraw::kPoint), earlier);
}

std::optional<SearchPoint> Sampler::completed(const SearchPoint& given, int draws, UnitRandom& drawn,
                                              const Earlier& earlier) const {
  std::optional<SearchPoint> other;  // without all that is given
  for (int draw = 0; draw < draws; ++draw) {
    SearchPoint point = given;
    for (std::size_t d = 0; d < point.size(); ++d) {
      const double unit = drawn.unit();
      if (!point[d]) point[d] = scales_[d].value(unit);
    }
    point = without_inactive(domain_, std::move(point));
    if (!is_new(point, earlier)) continue;
    const bool has_all = std::ranges::equal(
        given, point, [](const auto& asked, const auto& there) { return !asked || there; });
    if (has_all) return point;
    if (!other) other = std::move(point);
  }
  return other;
}

SearchPoint Sampler::at(std::span<const double> unit) const {
  SearchPoint point(scales_.size());
  for (std::size_t d = 0; d < scales_.size(); ++d) point[d] = scales_[d].value(unit[d]);
  return without_inactive(domain_, std::move(point));
}

bool Sampler::is_new(const SearchPoint& point, const Earlier& earlier) const {
  const auto is_it = [&point](const Observation& other) { return other.point == point; };
  if (earlier.points != nullptr ? earlier.points->contains(point)
                                : std::ranges::any_of(earlier.trials, is_it))
    return false;
  return !domain_.is_allowed || domain_.is_allowed(point);
}

std::optional<SearchPoint> Sampler::random_point(UnitRandom drawn, const Earlier& earlier) const {
  const SearchPoint nothing(scales_.size());
  if (auto point = completed(nothing, enumerable_ ? kDraws : kDrawsOfLarge, drawn, earlier)) return point;
  if (!enumerable_) return std::nullopt;
  std::set<SearchPoint> known;
  for (const Observation& observation : earlier.trials) known.insert(observation.point);
  std::vector<SearchPoint> left = all_points(domain_);
  std::erase_if(left, [&](const SearchPoint& point) { return known.contains(point); });
  if (left.empty()) return std::nullopt;
  return std::move(left[drawn.below(left.size())]);
}

std::optional<SearchPoint> Sampler::tpe_point(std::size_t trial, const Earlier& earlier) const {
  std::vector<const Observation*> all;
  for (const Observation& one : options_.learned) all.push_back(&one);
  for (const Observation& one : earlier.trials) all.push_back(&one);
  std::vector<std::size_t> good;  // all with a value, at first
  std::size_t ended = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->failed || all[i]->value) ++ended;
    if (has_value(*all[i])) good.push_back(i);
  }
  if (ended < kTpeStartTrials || good.empty()) return start_point(trial, earlier);
  const double good_part = all[good[0]]->others.empty() ? kGoodPart : kGoodPartOfSeveralGoals;
  const auto part = static_cast<std::size_t>(std::ceil(good_part * static_cast<double>(ended)));
  good = best_of(good, all, std::min({good.size(), part, kMaxGood}));
  const std::vector<WeightedPoint> good_points = by_rank(good, all), bad_points = newest_others(good, all);
  return best_candidate(trial, earlier, ParzenEstimator(scales_, good_points),
                        ParzenEstimator(scales_, bad_points));
}

// A Latin hypercube of every kTpeStartTrials trials: in each dimension, each has another one of as many
// equal parts.
std::optional<SearchPoint> Sampler::start_point(std::size_t trial, const Earlier& earlier) const {
  UnitRandom order_random = random(trial / kTpeStartTrials, SearchDraw::kStart);
  UnitRandom drawn = random(trial, SearchDraw::kPoint);
  std::vector<double> units(scales_.size());
  for (double& unit : units) {
    std::vector<std::size_t> order(kTpeStartTrials);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[order_random.below(i)]);
    const auto stratum = static_cast<double>(order[trial % kTpeStartTrials]);
    unit = (stratum + drawn.unit()) / static_cast<double>(kTpeStartTrials);
  }
  SearchPoint point = at(units);
  if (is_new(point, earlier)) return point;
  return random_point(drawn, earlier);
}

std::optional<SearchPoint> Sampler::best_candidate(std::size_t trial, const Earlier& earlier,
                                                   const ParzenEstimator& good,
                                                   const ParzenEstimator& bad) const {
  UnitRandom drawn = random(trial, SearchDraw::kCandidate);
  std::optional<SearchPoint> best;
  double best_score = -std::numeric_limits<double>::infinity();
  std::size_t candidates = 0;
  for (std::size_t draw = 0; draw < kMaxDraws && candidates < kCandidates; ++draw) {
    SearchPoint point = at(good.sample(drawn));
    if (!is_new(point, earlier)) continue;
    ++candidates;
    const double score = good.log_density(point) - bad.log_density(point);
    if (best && score <= best_score) continue;
    best_score = score;
    best = std::move(point);
  }
  if (best) return best;
  return random_point(random(trial, SearchDraw::kPoint), earlier);
}

}  // namespace sweep
