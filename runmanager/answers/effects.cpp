#include "runmanager/answers/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

// Relative to the total: smaller sums of squares are rounding, and a smaller difference of sums.
constexpr double kRounding = 1e-20, kDifferenceRounding = 1e-12;

// One setting, with the values that it has in completed runs.
struct Factor {
  std::string key;
  std::vector<std::string> values;
};

// A point of the grid: for each factor the index of its value; and the values of its repeats.
struct Cell {
  std::vector<std::size_t> at;
  std::vector<const RunRecord*> runs{};
};

std::vector<Factor> varying_factors(const std::vector<const RunRecord*>& runs) {
  std::vector<Factor> factors;
  for (const RunRecord* run : runs) {
    for (const auto& [key, value] : run->params) {
      if (key == kRepeatKey || std::ranges::any_of(factors, [&](const Factor& f) { return f.key == key; }))
        continue;
      factors.push_back({key, {}});
    }
  }
  for (Factor& factor : factors) {
    for (const RunRecord* run : runs) {
      const std::string value = param_text(run->params, factor.key);
      if (std::ranges::find(factor.values, value) == factor.values.end()) factor.values.push_back(value);
    }
  }
  std::erase_if(factors, [](const Factor& factor) { return factor.values.size() < 2; });
  return factors;
}

std::string cell_name(const std::vector<Factor>& factors, const std::vector<std::size_t>& at) {
  std::string name;
  for (std::size_t i = 0; i < factors.size(); ++i)
    name += fmt::format("{}{}={}", i == 0 ? "" : ",", factors[i].key, factors[i].values[at[i]]);
  return name;
}

// Moves to the next point of the grid, the last factor fastest. False after the last one.
bool advance(const std::vector<Factor>& factors, std::vector<std::size_t>& at) {
  for (std::size_t i = factors.size(); i-- > 0;) {
    if (++at[i] < factors[i].values.size()) return true;
    at[i] = 0;
  }
  return false;
}

// All points of the grid, in order. Throws ConfigError, which names points without runs.
std::vector<Cell> complete_grid(const std::vector<Factor>& factors,
                                const std::vector<const RunRecord*>& runs) {
  std::map<std::vector<std::size_t>, std::vector<const RunRecord*>> found;
  for (const RunRecord* run : runs) {
    std::vector<std::size_t> at;
    for (const Factor& factor : factors) {
      const std::string value = param_text(run->params, factor.key);
      at.push_back(static_cast<std::size_t>(std::ranges::find(factor.values, value) - factor.values.begin()));
    }
    found[at].push_back(run);
  }
  std::vector<Cell> cells;
  std::vector<std::string> missing;
  std::size_t gaps = 0, points = 0;
  std::vector<std::size_t> at(factors.size(), 0);
  do {
    ++points;
    const auto cell = found.find(at);
    if (cell != found.end()) {
      cells.push_back({at, cell->second});
    } else if (++gaps <= 3) {
      missing.push_back(cell_name(factors, at));
    }
  } while (advance(factors, at));
  if (gaps > 0) {
    throw ConfigError(fmt::format(
        "effects need a completed run for each of the {} combinations, but {} {} none: {}{}", points, gaps,
        gaps == 1 ? "has" : "have", fmt::join(missing, ", "), gaps > missing.size() ? ", …" : ""));
  }
  return cells;
}

// Values of the metric, [cells][repeats], and sums over parts of them.
class Table {
 public:
  Table(const std::vector<Factor>& factors, const std::vector<Cell>& cells, std::size_t repeats,
        const std::string& metric)
      : factors_(factors), cells_(cells), repeats_(repeats) {
    for (const Cell& cell : cells) {
      double sum = 0;
      for (std::size_t i = 0; i < repeats; ++i) {
        values_.push_back(*run_metric(*cell.runs[i], metric));
        sum += values_.back();
      }
      cell_means_.push_back(sum / static_cast<double>(repeats));
    }
    double sum = 0;
    for (const double mean : cell_means_) sum += mean;
    grand_mean_ = sum / static_cast<double>(cell_means_.size());
  }

  double grand_mean() const { return grand_mean_; }
  double cell_mean(std::size_t cell) const { return cell_means_[cell]; }
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
  double grand_mean_ = 0;
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
  const bool larger = larger_is_better(effects.metric);
  for (std::size_t i = 0; i < means.size(); ++i) {
    effect.levels.push_back(
        {factor.values[i],
         {.count = effects.combinations * effects.repeats / means.size(), .mean = means[i]}});
    if (larger ? means[i] > means[effect.best] : means[i] < means[effect.best]) effect.best = i;
  }
  return effect;
}

// In the order of their time; each has a better metric than all before it.
std::vector<FrontRun> pareto_front(const std::vector<Factor>& factors, const std::vector<Cell>& cells,
                                   const Table& table, std::size_t repeats, bool larger) {
  std::vector<FrontRun> runs;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    FrontRun run{.settings = {}, .metric = table.cell_mean(i)};
    for (std::size_t k = 0; k < repeats; ++k) {
      if (!cells[i].runs[k]->run_seconds) return {};
      run.run_seconds += *cells[i].runs[k]->run_seconds / static_cast<double>(repeats);
    }
    for (std::size_t f = 0; f < factors.size(); ++f)
      run.settings.emplace_back(factors[f].key, factors[f].values[cells[i].at[f]]);
    runs.push_back(std::move(run));
  }
  const auto better = [larger](double a, double b) { return larger ? a > b : a < b; };
  std::ranges::stable_sort(runs, [&](const FrontRun& a, const FrontRun& b) {
    return a.run_seconds != b.run_seconds ? a.run_seconds < b.run_seconds : better(a.metric, b.metric);
  });
  std::vector<FrontRun> front;
  for (FrontRun& run : runs) {
    if (front.empty() || better(run.metric, front.back().metric)) front.push_back(std::move(run));
  }
  return front;
}

}  // namespace

Effects effects_of(const std::vector<RunRecord>& runs, std::string metric) {
  std::vector<const RunRecord*> completed;
  for (const RunRecord& run : runs) {
    if (run.status == RunStatus::kCompleted) completed.push_back(&run);
  }
  if (completed.empty()) throw ConfigError("no run is completed, so there are no effects yet");
  if (metric.empty()) metric = default_metric(completed);
  for (const RunRecord* run : completed) {
    const std::optional<double> value = run_metric(*run, metric);
    if (value && std::isfinite(*value)) continue;
    throw ConfigError(fmt::format("{} has no finite {}; the metrics are {}", run->name, metric,
                                  fmt::join(metric_names(completed), ", ")));
  }
  const std::vector<Factor> factors = varying_factors(completed);
  if (factors.empty()) throw ConfigError("no setting has two values among the completed runs");
  std::vector<Cell> cells = complete_grid(factors, completed);
  Effects effects{.metric = std::move(metric), .combinations = cells.size()};
  effects.repeats = cells[0].runs.size();
  for (const Cell& cell : cells) effects.repeats = std::min(effects.repeats, cell.runs.size());
  for (const Cell& cell : cells) {
    for (std::size_t i = effects.repeats; i < cell.runs.size(); ++i)
      effects.left_out.push_back(cell.runs[i]->name);
  }
  const Table table(factors, cells, effects.repeats, effects.metric);
  effects.mean = table.grand_mean();
  for (std::size_t i = 0; i < factors.size(); ++i)
    effects.effects.push_back(main_effect(table, factors[i], i, effects));
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
  if (!is_time(effects.metric)) {
    effects.front = pareto_front(factors, cells, table, effects.repeats, larger_is_better(effects.metric));
  }
  return effects;
}

}  // namespace sweep
