// PED-ANOVA: S. Watanabe, A. Bansal, F. Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance
// in Arbitrary Subspaces", IJCAI 2023, arXiv 2304.10255; for settings that some trials lack, "Conditional
// PED-ANOVA", arXiv 2601.20800. The importance of a setting is the Pearson divergence of its values' density
// in the best trials from that in all: the variance of the probability to be among the best, as far as this
// setting alone explains it. It does not depend on the scale, so values are replaced by their ranks among all
// trials, whose density is 1: no ranges are needed, and logarithms make no difference. It is estimated from
// pairs of different trials, so that settings without influence get 0 on average.
#include "runmanager/answers/importances.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/base/error.h"
#include "runmanager/config/params.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBestPart = 0.1;
constexpr std::size_t kFewestBest = 10, kFewestTrials = 4;
constexpr int kFailedPlace = 2;        // after completed trials, and pruned ones
constexpr std::size_t kMaxCells = 12;  // numbers that are compared as such if most are there again

// The trials that have ended, the best first.
struct Ranking {
  std::vector<const RunRecord*> trials{};
  std::size_t best = 0;
};

Ranking ranked(const std::vector<RunRecord>& runs, const Goal& goal) {
  using Place = std::tuple<int, int, double>;  // the smaller, the better
  std::vector<std::pair<Place, const RunRecord*>> places;
  bool any = false;
  for (const RunRecord& run : runs) {
    const std::optional<double> value = run_metric(run, *goal.metric);
    const bool is_number = value && std::isfinite(*value);
    const double cost = is_number ? goal.cost(*value) : 0;
    const bool is_whole = run.status == RunStatus::kCompleted;
    any = any || (is_whole && is_number);
    if (is_whole && is_number)
      places.push_back({{0, 0, cost}, &run});
    else if (run.status == RunStatus::kPruned && is_number)
      places.push_back({{1, -static_cast<int>(run.epochs.size()), cost}, &run});
    else if (is_whole || run.status == RunStatus::kPruned || run.status == RunStatus::kFailed)
      places.push_back({{kFailedPlace, 0, 0}, &run});
  }
  if (!any) throw ConfigError(fmt::format("no completed trial has a finite {}", goal.metric->key));
  if (places.size() < kFewestTrials)
    throw ConfigError(fmt::format("importances need {} trials that have ended, but there are {}",
                                  kFewestTrials, places.size()));
  std::ranges::stable_sort(places, {}, [](const auto& trial) { return trial.first; });
  const auto tenth = static_cast<std::size_t>(std::ceil(kBestPart * static_cast<double>(places.size())));
  // Failed ones are equal, and never among the best.
  const auto good = static_cast<std::size_t>(std::ranges::count_if(
      places, [](const auto& trial) { return std::get<0>(trial.first) < kFailedPlace; }));
  Ranking ranking{.best = std::min({std::max(tenth, kFewestBest), places.size() / 2, good})};
  while (ranking.best < good && places[ranking.best].first == places[ranking.best - 1].first) ++ranking.best;
  for (const auto& [place, run] : places) ranking.trials.push_back(run);
  return ranking;
}

// The values of a setting in the trials that have it, the best trials first.
struct Values {
  std::size_t all = 0;
  std::size_t best = 0;                            // how many are of the best trials
  std::vector<double> numbers{};                   // as many, unless some are no numbers: then none
  std::map<ParamValue, std::size_t> count{};       // how often each value is there
  std::map<ParamValue, std::size_t> best_count{};  // how often in the best trials
};

Values values_of(const std::string& key, const Ranking& ranking) {
  Values values;
  for (std::size_t i = 0; i < ranking.trials.size(); ++i) {
    const ParamValue* const value = find_param(ranking.trials[i]->params, key);
    if (value == nullptr) continue;
    ++values.all;
    ++values.count[*value];
    if (i < ranking.best) {
      ++values.best;
      ++values.best_count[*value];
    }
    if (const auto number = param_number(*value)) values.numbers.push_back(*number);
  }
  if (values.numbers.size() < values.all) values.numbers.clear();
  return values;
}

// An estimate of a divergence, and by how much it would scatter around 0 if there were none.
struct Divergence {
  double value = 0, deviation = 0;
};

// For few values, or texts: how much more often two of the best trials have the same one than two of all.
Divergence divergence_of_cells(const Values& values) {
  const auto best = static_cast<double>(values.best), all = static_cast<double>(values.all);
  double sum = 0;
  for (const auto& [value, count] : values.best_count) {
    const auto there = static_cast<double>(count);
    sum += there * (there - 1) * all / static_cast<double>(values.count.at(value));
  }
  const double pairs = best * (best - 1);
  return {sum / pairs - 1, std::sqrt(2 * static_cast<double>(values.count.size() - 1) / pairs)};
}

// The part of trials with smaller numbers, for each of the best trials; equal ones count half.
std::vector<double> ranks_of_best(const Values& values) {
  std::vector<double> sorted = values.numbers;
  std::ranges::sort(sorted);
  std::vector<double> ranks;
  for (std::size_t i = 0; i < values.best; ++i) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), values.numbers[i]);
    const auto middle = static_cast<double>((first - sorted.begin()) + (last - sorted.begin())) / 2;
    ranks.push_back(middle / static_cast<double>(sorted.size()));
  }
  return ranks;
}

// For many numbers: how near two of the best trials are in rank, by a normal kernel that is mirrored at the
// ends.
Divergence divergence_of_ranks(const Values& values) {
  const std::vector<double> ranks = ranks_of_best(values);
  const auto best = static_cast<double>(ranks.size());
  const double mean = std::accumulate(ranks.begin(), ranks.end(), 0.0) / best;
  double squares = 0;
  for (const double rank : ranks) squares += (rank - mean) * (rank - mean);
  // Scott's rule, but no finer than ranks are.
  const double width = std::max(1.06 * std::sqrt(squares / (best - 1)) * std::pow(best, -0.2),
                                1 / static_cast<double>(values.all));
  const auto density = [width](double distance) {
    const double x = distance / width;
    return std::exp(-x * x / 2) / (width * std::sqrt(2 * std::numbers::pi));
  };
  double sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double total = ranks[i] + ranks[j];
      sum += 2 * (density(ranks[i] - ranks[j]) + density(total) + density(2 - total));
    }
  }
  const double pairs = best * (best - 1);
  const double square = std::max(0.0, 1 / (2 * std::sqrt(std::numbers::pi) * width) - 1);
  return {sum / pairs - 1, std::sqrt(2 * square / pairs)};
}

// What the best trials have: the middle four fifths of numbers, or the value that most of them have.
std::string best_text(const Values& values, bool by_ranks) {
  if (by_ranks) {
    std::vector<double> numbers(values.numbers.begin(),
                                values.numbers.begin() + static_cast<std::ptrdiff_t>(values.best));
    std::ranges::sort(numbers);
    const std::size_t cut = numbers.size() / 10;
    return fmt::format("{:.4g} to {:.4g}", numbers[cut], numbers[numbers.size() - 1 - cut]);
  }
  const auto most =
      std::ranges::max_element(values.best_count, {}, [](const auto& value) { return value.second; });
  return fmt::format("{} in {} of {}", param_text(most->first), most->second, values.best);
}

Importance importance_of(const std::string& key, const Values& values, const Ranking& ranking) {
  const bool comes_again = 2 * values.count.size() <= values.all;
  const bool by_ranks = !values.numbers.empty() && (values.count.size() > kMaxCells || !comes_again);
  Importance importance{.key = key, .trials = values.all};
  if (values.best > 0) importance.best = best_text(values, by_ranks);
  if (values.best < 2) return importance;
  const Divergence divergence = by_ranks ? divergence_of_ranks(values) : divergence_of_cells(values);
  // A setting that only some trials have explains what differs among those: that others lack it is the doing
  // of the setting that it depends on.
  const auto all = static_cast<double>(ranking.trials.size()), having = static_cast<double>(values.all);
  const double odds = static_cast<double>(values.best) / having / (static_cast<double>(ranking.best) / all);
  importance.divergence = std::max(0.0, divergence.value) * having / all * odds * odds;
  importance.may_be_chance = divergence.value < 2 * divergence.deviation;
  return importance;
}

}  // namespace

Importances importances_of(const std::vector<RunRecord>& runs, const Goal& goal) {
  const Ranking ranking = ranked(runs, goal);
  Importances importances{.goal = goal, .trials = ranking.trials.size(), .best = ranking.best};
  double sum = 0;
  for (const std::string& key : param_keys(runs)) {
    if (key == kRepeatKey) continue;
    const Values values = values_of(key, ranking);
    if (values.count.size() < 2) continue;
    sum += importances.settings.emplace_back(importance_of(key, values, ranking)).divergence;
  }
  if (importances.settings.empty())
    throw ConfigError("no setting has two values among the trials that have ended");
  if (sum > 0) {
    for (Importance& importance : importances.settings) importance.share = importance.divergence / sum;
  }
  std::ranges::stable_sort(importances.settings, std::greater<>(), &Importance::divergence);
  return importances;
}

Answer answer_of(const Importances& importances, const TableStyle& style) {
  TextTable table({"setting", "best trials have", "importance", "trials", "by chance"}, 2);
  table.set_importances({kNeeded, 30, kNeeded, 10, 20});
  table.columns[0].leads = true;
  for (const Importance& setting : importances.settings)
    table.rows.push_back({setting.key, setting.best, share_cell(setting.share, style.format),
                          std::to_string(setting.trials), setting.may_be_chance ? "maybe" : "no"});
  std::string text =
      wrapped(fmt::format("Importance of settings for the {}, by PED-ANOVA, of {} trials that have ended\n\n",
                          goal_text({importances.goal}), importances.trials),
              style.width);
  text += formatted_table(table, {.unicode = style.unicode, .width = style.width});
  text += wrapped(
      fmt::format(
          "\nimportance: how far the values of the best {} trials differ from those of all, as a share "
          "of all settings. by chance: whether a setting without influence may come as far.\n",
          importances.best),
      style.width);
  Json json = {{"metric", importances.goal.metric->key},
               {"larger_is_better", importances.goal.largest_is_best},
               {"method", "PED-ANOVA"},
               {"trials", importances.trials},
               {"best", importances.best},
               {"importances", Json::array()}};
  for (const Importance& setting : importances.settings)
    json["importances"].push_back({{"key", setting.key},
                                   {"share", json_number(setting.share)},
                                   {"divergence", json_number(setting.divergence)},
                                   {"may_be_chance", setting.may_be_chance},
                                   {"trials", setting.trials},
                                   {"best", setting.best}});
  return {std::move(text), std::move(json), {std::move(table)}};
}

}  // namespace sweep
