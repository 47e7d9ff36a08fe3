#include "runmanager/answers/run_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

// Numbers before texts.
using SortValue = std::variant<double, std::string>;

std::optional<SortValue> param_value(const RunRecord& run, const std::string& key) {
  const ParamValue* value = find_param(run.params, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  if (const auto number = param_number(*value)) return *number;
  return std::get<bool>(*value) ? 1.0 : 0.0;
}

std::optional<SortValue> metric_value(const RunRecord& run, const Goal& goal) {
  const std::optional<double> value = run_metric(run, *goal.metric);
  if (!value || std::isnan(*value)) return std::nullopt;
  return goal.cost(*value);
}

}  // namespace

void sort_runs(std::vector<RunRecord>& runs, const std::string& key, const Goals& goals) {
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) all.push_back(&run);
  const std::vector<std::string> metrics = metric_names(all);
  const bool is_metric = std::ranges::find(metrics, key) != metrics.end();
  std::vector<std::string> known;
  std::optional<std::string> param;
  for (const std::string& of_param : param_keys(runs)) {
    known.push_back(param_title(of_param, metrics));
    if (known.back() == key || std::string(kParamPrefix) + of_param == key) param = of_param;
  }
  if (!param && !is_metric) {
    known.insert(known.end(), metrics.begin(), metrics.end());
    throw ConfigError(fmt::format("no run has \"{}\" to sort by, there are: {}{}", key,
                                  fmt::join(known, ", "), did_you_mean(nearest_key(key, known), "; did")));
  }
  const Goal by = goal_for(metric_named(key), goals);
  std::vector<std::pair<std::optional<SortValue>, RunRecord>> keyed;
  for (RunRecord& run : runs) {
    auto value = param ? param_value(run, *param) : metric_value(run, by);
    keyed.emplace_back(std::move(value), std::move(run));
  }
  std::ranges::stable_sort(keyed, [](const auto& a, const auto& b) {
    if (!a.first || !b.first) return a.first.has_value() && !b.first;
    return *a.first < *b.first;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = std::move(keyed[i].second);
}

}  // namespace sweep
