#include "runmanager/answers/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/search/pareto.h"

namespace sweep {
namespace {

// Relative to the total: smaller sums of squares are rounding, and a smaller difference of sums.
constexpr double kRounding = 1e-20, kDifferenceRounding = 1e-12;
// Relative to the values: means that differ by less are the same.
constexpr double kValueRounding = 8 * std::numeric_limits<double>::epsilon();

// One setting, with the values that it has in completed runs.
struct Factor {
  std::string key;
  std::vector<std::string> values{};
  std::vector<std::size_t> of_runs{};  // for each run the index of its value
};

// A point of the grid: for each factor the index of its value; and its runs, none of them twice.
struct Cell {
  std::vector<std::size_t> at;
  std::vector<const RunRecord*> runs{};
};

using Runs = std::vector<const RunRecord*>;

std::vector<Factor> varying_factors(const Runs& runs) {
  std::vector<Factor> factors;
  std::set<std::string> known = {std::string(kRepeatKey)};
  for (const RunRecord* run : runs) {
    for (const auto& [key, value] : run->params) {
      if (known.insert(key).second) factors.push_back({key});
    }
  }
  for (Factor& factor : factors) {
    std::map<std::string, std::size_t> index;
    for (const RunRecord* run : runs) {
      const auto [found, is_new] = index.try_emplace(param_text(run->params, factor.key), index.size());
      if (is_new) factor.values.push_back(found->first);
      factor.of_runs.push_back(found->second);
    }
  }
  std::erase_if(factors, [](const Factor& factor) { return factor.values.size() < 2; });
  return factors;
}

std::vector<std::size_t> place_of(const std::vector<Factor>& factors, std::size_t run) {
  std::vector<std::size_t> at;
  at.reserve(factors.size());
  for (const Factor& factor : factors) at.push_back(factor.of_runs[run]);
  return at;
}

std::string cell_name(const std::vector<Factor>& factors, const std::vector<std::size_t>& at) {
  std::string name;
  for (std::size_t i = 0; i < factors.size(); ++i)
    name += fmt::format("{}{}={}", i == 0 ? "" : ",", factors[i].key, factors[i].values[at[i]]);
  return name;
}

// Tells whether runs gave the same numbers, to the bit: then they are one training that was done twice,
// unless they are repeats, which coarse numbers may not tell apart.
class SameNumbers {
 public:
  SameNumbers(const Runs& runs, const Metric& metric) : metrics_{&metric} {
    for (const std::string& name : metric_names(runs))
      if (const Metric& other = metric_named(name); is_quality(other)) metrics_.push_back(&other);
  }
  bool operator()(const RunRecord& a, const RunRecord& b) const {
    return std::ranges::all_of(metrics_, [&](const Metric* metric) {
      const std::optional<double> x = run_metric(a, *metric), y = run_metric(b, *metric);
      return x == y || (x && y && std::isnan(*x) && std::isnan(*y));
    });
  }

 private:
  std::vector<const Metric*> metrics_;
};

// Whether all runs that differ only in factors[index] gave the same numbers: the number of workers, say, or
// one of two devices with the same arithmetic. False if there are no such runs.
bool changes_no_bit(const std::vector<Factor>& factors, std::size_t index, const Runs& runs,
                    const SameNumbers& same) {
  std::map<std::pair<std::string, std::vector<std::size_t>>, const RunRecord*> first;  // by all but this one
  bool compared = false;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::vector<std::size_t> at = place_of(factors, run);
    at[index] = 0;
    const auto [found, is_new] =
        first.try_emplace({param_text(runs[run]->params, kRepeatKey), std::move(at)}, runs[run]);
    if (is_new) continue;
    if (!same(*found->second, *runs[run])) return false;
    compared = true;
  }
  return compared;
}

// The points that have runs, in order.
std::vector<Cell> cells_of(const std::vector<Factor>& factors, const Runs& runs, const SameNumbers& same) {
  std::map<std::vector<std::size_t>, Runs> found;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    Runs& there = found[place_of(factors, run)];
    const std::string repeat = param_text(runs[run]->params, kRepeatKey);
    const auto is_again = [&](const RunRecord* other) {
      return param_text(other->params, kRepeatKey) == repeat && same(*other, *runs[run]);
    };
    if (std::ranges::none_of(there, is_again)) there.push_back(runs[run]);
  }
  std::vector<Cell> cells;
  cells.reserve(found.size());
  for (auto& [at, of_cell] : found) cells.push_back({at, std::move(of_cell)});
  return cells;
}

// Throws ConfigError if points of the grid have no run, and names the first ones. Never walks the whole grid:
// ranges of a search make one with more points than could be counted.
void check_complete(const std::vector<Factor>& factors, const std::vector<Cell>& cells) {
  constexpr std::size_t kNamed = 3;
  double points = 1;
  for (const Factor& factor : factors) points *= static_cast<double>(factor.values.size());
  const double gaps = points - static_cast<double>(cells.size());
  if (gaps == 0) return;
  for (const Factor& factor : factors) {
    if (std::ranges::find(factor.values, "") != factor.values.end())
      throw ConfigError(
          fmt::format("effects need all settings in every run, but some have no {}", factor.key));
  }
  std::vector<std::string> missing;
  std::vector<std::size_t> at(factors.size(), 0);
  auto cell = cells.begin();  // the first one that is not before `at`
  while (missing.size() < kNamed && static_cast<double>(missing.size()) < gaps) {
    if (cell != cells.end() && cell->at == at)
      ++cell;
    else
      missing.push_back(cell_name(factors, at));
    for (std::size_t i = factors.size(); i-- > 0;) {  // the next point, the last factor fastest
      if (++at[i] < factors[i].values.size()) break;
      at[i] = 0;
    }
  }
  throw ConfigError(fmt::format(
      "effects need a completed run for each of the {:.15g} combinations, but {:.15g} {} none: {}{}", points,
      gaps, gaps == 1 ? "has" : "have", fmt::join(missing, ", "), gaps > kNamed ? ", …" : ""));
}

// Values of the metric, [cells][repeats], and sums over parts of them. All are distances from `base()`: equal
// values then have a sum of squares of 0, not of what is rounded in their mean. It is the value next to 0, so
// that a run that diverged does not round the others.
class Table {
 public:
  Table(const std::vector<Factor>& factors, const std::vector<Cell>& cells, std::size_t repeats,
        const Metric& metric)
      : factors_(factors), cells_(cells), repeats_(repeats) {
    for (const Cell& cell : cells) {
      for (std::size_t i = 0; i < repeats; ++i) values_.push_back(*run_metric(*cell.runs[i], metric));
    }
    base_ = std::ranges::min(values_, {}, [](double value) { return std::abs(value); });
    const auto [least, largest] = std::ranges::minmax(values_);
    const double rounding = kValueRounding * std::max(std::abs(least), std::abs(largest));
    for (double& value : values_) value = largest - least <= rounding ? 0 : value - base_;
    for (auto cell = values_.begin(); cell != values_.end(); cell += static_cast<std::ptrdiff_t>(repeats))
      cell_means_.push_back(std::accumulate(cell, cell + static_cast<std::ptrdiff_t>(repeats), 0.0) /
                            static_cast<double>(repeats));
    double sum = 0;
    for (const double mean : cell_means_) sum += mean;
    grand_mean_ = sum / static_cast<double>(cell_means_.size());
  }

  double base() const { return base_; }
  double grand_mean() const { return base_ + grand_mean_; }
  double total() const {
    double squares = 0;
    for (const double value : values_) squares += (value - grand_mean_) * (value - grand_mean_);
    return squares;
  }
  // Within the combinations.
  double of_repeats() const {
    double squares = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double distance = values_[i] - cell_means_[i / repeats_];
      squares += distance * distance;
    }
    return squares;
  }
  // [values of the factor]
  std::vector<double> means(std::size_t factor) const {
    std::vector<double> sums(factors_[factor].values.size(), 0);
    for (std::size_t i = 0; i < cells_.size(); ++i) sums[cells_[i].at[factor]] += cell_means_[i];
    for (double& sum : sums) sum *= static_cast<double>(sums.size()) / static_cast<double>(cells_.size());
    return sums;
  }
  double of_factor(std::size_t factor) const {
    const std::vector<double> of_values = means(factor);
    double squares = 0;
    for (const double mean : of_values) squares += (mean - grand_mean_) * (mean - grand_mean_);
    return squares * static_cast<double>(values_.size() / of_values.size());
  }
  double of_pair(std::size_t a, std::size_t b) const {
    const std::vector<double> of_a = means(a), of_b = means(b);
    std::vector<double> sums(of_a.size() * of_b.size(), 0);
    for (std::size_t i = 0; i < cells_.size(); ++i)
      sums[cells_[i].at[a] * of_b.size() + cells_[i].at[b]] += cell_means_[i];
    const double weight = static_cast<double>(sums.size()) / static_cast<double>(cells_.size());
    double squares = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double beyond = sums[i] * weight - of_a[i / of_b.size()] - of_b[i % of_b.size()] + grand_mean_;
      squares += beyond * beyond;
    }
    return squares * static_cast<double>(values_.size() / sums.size());
  }

 private:
  const std::vector<Factor>& factors_;
  const std::vector<Cell>& cells_;
  std::size_t repeats_;
  std::vector<double> values_;
  std::vector<double> cell_means_;
  double base_ = 0, grand_mean_ = 0;
};

// Sets what is left of the total as the error, or what repeats differ by.
void set_error(Effects& effects, const Table& table, double total) {
  double explained = 0;
  std::size_t degrees = 0;
  for (const Effect& effect : effects.effects) {
    explained += effect.sum_squares;
    degrees += effect.degrees;
  }
  if (effects.repeats > 1) {
    effects.error = EffectError::kRepeats;
    effects.error_sum_squares = table.of_repeats();
    effects.error_degrees = effects.combinations * (effects.repeats - 1);
  } else if (effects.combinations - 1 > degrees) {
    effects.error = EffectError::kInteractions;
    effects.error_sum_squares = std::max(0.0, total - explained);
    effects.error_degrees = effects.combinations - 1 - degrees;
  }
  effects.error_share = total > 0 ? effects.error_sum_squares / total : 0;
}

void test_effects(Effects& effects, double total) {
  if (effects.error == EffectError::kNone || effects.error_sum_squares <= kDifferenceRounding * total) return;
  const auto error_degrees = static_cast<double>(effects.error_degrees);
  const double error = effects.error_sum_squares / error_degrees;
  const double t = quantile(boost::math::students_t(error_degrees), 0.975);
  for (Effect& effect : effects.effects) {
    if (effect.degrees == 0) continue;
    const auto degrees = static_cast<double>(effect.degrees);
    effect.f = effect.sum_squares / degrees / error;
    effect.p = cdf(complement(boost::math::fisher_f(degrees, error_degrees), *effect.f));
    for (EffectLevel& level : effect.levels) {
      const double half = t * std::sqrt(error / static_cast<double>(level.metric.count));
      level.metric.interval = {level.metric.mean - half, level.metric.mean + half};
    }
  }
}

Effect main_effect(const Table& table, const Factor& factor, std::size_t index, const Effects& effects) {
  Effect effect{
      .keys = {factor.key}, .sum_squares = table.of_factor(index), .degrees = factor.values.size() - 1};
  const std::vector<double> means = table.means(index);
  for (std::size_t i = 0; i < means.size(); ++i) {
    effect.levels.push_back(
        {factor.values[i],
         {.count = effects.combinations * effects.repeats / means.size(), .mean = table.base() + means[i]}});
    if (effects.goal.is_better(means[i], means[effect.best])) effect.best = i;
  }
  return effect;
}

// The effect of a setting that changes no bit, of all runs of each of its values.
Effect no_effect(const Factor& factor, const Runs& runs, const Metric& metric) {
  Effect effect{.keys = {factor.key}};
  for (const std::string& value : factor.values) effect.levels.push_back({value});
  for (std::size_t run = 0; run < runs.size(); ++run) {
    MeanEstimate& level = effect.levels[factor.of_runs[run]].metric;
    level.mean += (*run_metric(*runs[run], metric) - level.mean) / static_cast<double>(++level.count);
  }
  return effect;
}

// In the order of their time; each has a better metric than all before it. Settings that change no bit may
// change the time.
std::vector<FrontRun> front_of_times(const std::vector<Factor>& factors, const Runs& runs, const Goal& goal) {
  std::map<std::vector<std::size_t>, std::pair<FrontRun, double>> combinations;  // sums, and how many
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]->run_seconds) return {};
    auto& [sum, count] = combinations[place_of(factors, i)];
    sum.metric += *run_metric(*runs[i], *goal.metric);
    sum.run_seconds += *runs[i]->run_seconds;
    ++count;
  }
  std::vector<FrontRun> all;
  for (auto& [at, combination] : combinations) {
    auto& [mean, count] = combination;
    mean.metric /= count;
    mean.run_seconds /= count;
    for (std::size_t f = 0; f < factors.size(); ++f)
      mean.settings.emplace_back(factors[f].key, factors[f].values[at[f]]);
    all.push_back(std::move(mean));
  }
  std::vector<GoalValues> points;
  for (const FrontRun& run : all) points.push_back({run.run_seconds, goal.cost(run.metric)});
  std::vector<FrontRun> front;
  for (const std::size_t i : pareto_front(points)) front.push_back(std::move(all[i]));
  return front;
}

}  // namespace

Effects effects_of(const std::vector<RunRecord>& records, const Goal& goal) {
  Runs runs;
  for (const RunRecord& run : records) {
    if (run.status == RunStatus::kCompleted) runs.push_back(&run);
  }
  if (runs.empty()) throw ConfigError("no run is completed, so there are no effects yet");
  const Metric& metric = *goal.metric;
  for (const RunRecord* run : runs) {
    const std::optional<double> value = run_metric(*run, metric);
    if (value && std::isfinite(*value)) continue;
    throw ConfigError(fmt::format("{} has no finite {}; the metrics are {}", run->name, metric.key,
                                  fmt::join(metric_names(runs), ", ")));
  }
  const std::vector<Factor> all = varying_factors(runs);
  if (all.empty()) throw ConfigError("no setting has two values among the completed runs");
  const SameNumbers same(runs, metric);
  std::vector<Factor> factors;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!changes_no_bit(all, i, runs, same)) factors.push_back(all[i]);
  }
  const std::vector<Cell> cells = cells_of(factors, runs, same);
  check_complete(factors, cells);
  Effects effects{.goal = goal, .combinations = cells.size()};
  effects.repeats = cells[0].runs.size();
  for (const Cell& cell : cells) effects.repeats = std::min(effects.repeats, cell.runs.size());
  for (const Cell& cell : cells) {
    for (std::size_t i = effects.repeats; i < cell.runs.size(); ++i)
      effects.left_out.push_back(cell.runs[i]->name);
  }
  const Table table(factors, cells, effects.repeats, metric);
  effects.mean = table.grand_mean();
  std::size_t tested = 0;  // position among `factors`
  for (const Factor& factor : all) {
    const bool is_tested = tested < factors.size() && factors[tested].key == factor.key;
    effects.effects.push_back(is_tested ? main_effect(table, factor, tested++, effects)
                                        : no_effect(factor, runs, metric));
  }
  // Without repeats, the interaction of the only two settings is all there is to test them against.
  if (factors.size() > 2 || effects.repeats > 1) {
    for (std::size_t a = 0; a < factors.size(); ++a) {
      for (std::size_t b = a + 1; b < factors.size(); ++b) {
        effects.effects.push_back(
            {.keys = {factors[a].key, factors[b].key},
             .sum_squares = table.of_pair(a, b),
             .degrees = (factors[a].values.size() - 1) * (factors[b].values.size() - 1)});
      }
    }
  }
  const double total = table.total();
  for (Effect& effect : effects.effects) {
    if (effect.sum_squares <= kRounding * total) effect.sum_squares = 0;
    effect.share = total > 0 ? effect.sum_squares / total : 0;
  }
  set_error(effects, table, total);
  test_effects(effects, total);
  if (metric.unit != MetricUnit::kSeconds) effects.front = front_of_times(all, runs, goal);
  return effects;
}

}  // namespace sweep
