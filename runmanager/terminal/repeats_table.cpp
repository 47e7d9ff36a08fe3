#include "runmanager/terminal/repeats_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runmanager/records/repeats.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

// "85.36% ± 0.21"; "" if a run has no value.
std::string spread_text(const std::vector<const RunRecord*>& runs, const Metric& metric,
                        const char* plus_minus) {
  std::vector<double> values;
  for (const RunRecord* run : runs) {
    const std::optional<double> value = run_metric(*run, metric);
    if (!value) return "";
    values.push_back(*value);
  }
  const Spread spread = spread_of(values);
  std::string deviation = metric_text(metric, spread.deviation);
  if (deviation.ends_with('%')) deviation.pop_back();
  return fmt::format("{} {} {}", metric_text(metric, spread.mean), plus_minus, deviation);
}

// Which parameters go first: those that do not vary.
void set_importances(TextTable& table, std::size_t parameters) {
  for (std::size_t i = 0; i < parameters; ++i) {
    const bool varies =
        std::ranges::any_of(table.rows, [&](const auto& row) { return row[i] != table.rows[0][i]; });
    table.columns[i].importance = !varies ? 10 : parameters > 1 ? 50 : kNeeded;
  }
}

}  // namespace

std::string repeats_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          bool unicode, int width) {
  std::vector<std::string> shown_keys = keys;
  std::erase(shown_keys, kRepeatKey);
  TextTable table(shown_keys, shown_keys.size());
  table.columns.push_back({.title = "repeats", .importance = 15});
  std::vector<const Metric*> shown_metrics;
  for (const Metric& metric : metrics()) {
    if (metric.mean_importance == 0) continue;
    shown_metrics.push_back(&metric);
    table.columns.push_back({.title = std::string(metric.title), .importance = metric.mean_importance});
  }
  std::vector<Params> params;
  params.reserve(runs.size());
  for (const RunRecord& run : runs) params.push_back(run.params);
  for (const RepeatGroup& group : repeat_groups(params)) {
    const auto repeats = completed_repeats(group, runs);
    if (!repeats) continue;
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const std::string& key : shown_keys) row.push_back(param_text(group.params, key));
    row.push_back(std::to_string(repeats->runs.size()));
    for (const Metric* metric : shown_metrics)
      row.push_back(spread_text(repeats->runs, *metric, unicode ? "±" : "+-"));
  }
  if (table.rows.empty()) return "";
  set_importances(table, shown_keys.size());
  table.drop_empty_columns();
  if (width > 0) table.fit(width);
  return fmt::format("\nMean {} standard deviation over repeats:\n\n{}", unicode ? "±" : "+-",
                     terminal_table(table, unicode));
}

}  // namespace sweep
