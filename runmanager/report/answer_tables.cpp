#include "runmanager/report/answer_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "runmanager/answers/statistics.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using Settings = std::vector<std::pair<std::string, std::string>>;

std::string settings_text(const Settings& settings) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : settings) parts.push_back(fmt::format("{}={}", key, value));
  return parts.empty() ? "all" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string ratio_text(const ComparedValue& value, const ComparedPair& pair) {
  if (!pair.ratio || !(*pair.ratio > 0)) return "";
  const Faster compared = faster_of(value, *pair.ratio);
  return fmt::format("{} is {:.3g} times as fast", compared.faster, compared.times);
}

}  // namespace

std::vector<const Effect*> sorted_effects(const ReportData& data, std::size_t keys) {
  std::vector<const Effect*> sorted;
  if (!data.effects) return sorted;
  for (const Effect& effect : data.effects->effects) {
    if (effect.keys.size() == keys) sorted.push_back(&effect);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Effect* a, const Effect* b) { return a->share > b->share; });
  return sorted;
}

ChartTable levels_table(const ReportData& data) {
  ChartTable table{
      {"row", "level", "setting", "value", "share", "mean", "low", "high", "text", "best", "middle"}};
  for (const Effect* effect : sorted_effects(data, 1)) {
    const double middle = data.effects->mean;
    table.rows.push_back({table.rows.size(), false, effect->keys[0],
                          fmt::format("{} of the differences", share_text(effect->share)), effect->share,
                          nullptr, nullptr, nullptr, "", false, middle});
    for (std::size_t i = 0; i < effect->levels.size(); ++i) {
      const EffectLevel& level = effect->levels[i];
      const auto& interval = level.metric.interval;
      table.rows.push_back({table.rows.size(), true, effect->keys[0], level.value, effect->share,
                            chart_number(level.metric.mean),
                            chart_number(interval ? std::optional(interval->first) : std::nullopt),
                            chart_number(interval ? std::optional(interval->second) : std::nullopt),
                            metric_text(level.metric.mean, data.metric),
                            effect->share >= kHardlyAnything && i == effect->best, middle});
    }
  }
  return table;
}

ChartTable interactions_table(const ReportData& data) {
  const std::vector<const Effect*> pairs = sorted_effects(data, 2);
  const bool tested =
      std::any_of(pairs.begin(), pairs.end(), [](const Effect* effect) { return effect->p.has_value(); });
  ChartTable table{{"settings together", "share"}};
  if (tested) table.columns.emplace_back("p");
  for (const Effect* effect : pairs) {
    auto& row = table.rows.emplace_back();
    row = {fmt::format("{} × {}", effect->keys[0], effect->keys[1]), share_text(effect->share)};
    if (tested) row.emplace_back(p_text(effect->p, "–"));
  }
  return table;
}

ChartTable comparison_table(const ReportData& data, std::size_t most) {
  ChartTable table{{"row", "place", "label", "side", "seconds", "text", "ratio"}};
  if (!data.compared) return table;
  std::size_t row = 0;
  for (const ComparedValue& value : data.compared->values) {
    for (const ComparedPair& pair : value.pairs) {
      if (!pair.base || !pair.other) continue;
      if (row == most) return table;
      std::string label = settings_text(pair.settings);
      if (!pair.notes.empty()) label += fmt::format(" (but {})", fmt::join(pair.notes, "; "));
      const std::string ratio = ratio_text(value, pair);
      const auto add = [&](int place, const std::string& side, double seconds, int jobs) {
        const std::string text = (jobs > 1 ? "~" : "") + human_seconds(seconds);
        table.rows.push_back({row, place, label, side, seconds, text, ratio});
      };
      add(0, value.base, *pair.base, pair.base_jobs);
      add(1, value.other, *pair.other, pair.other_jobs);
      ++row;
    }
  }
  return table;
}

ChartTable goals_table(const ReportData& data) {
  ChartTable table{{"run", "label", "x", "y", "xText", "yText", "front"}};
  if (data.goals.size() < 2) return table;
  const Metric &x = *data.goals[1].metric, &y = *data.goals[0].metric;
  const std::vector<std::size_t> front = front_runs(data.records, data.goals);
  for (std::size_t run = 0; run < data.records.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.status != RunStatus::kCompleted || !goal_values(record, data.goals)) continue;
    const std::optional<double> across = run_metric(record, x), up = run_metric(record, y);
    table.rows.push_back({run, run_label(data, run, true), *across, *up, metric_text(x, across),
                          metric_text(y, up), std::ranges::find(front, run) != front.end()});
  }
  return table;
}

ChartTable front_table(const ReportData& data) {
  ChartTable table{{"settings", metric_title(data.metric), "time of the run"}};
  if (!data.effects) return table;
  for (const FrontRun& run : data.effects->front)
    table.rows.push_back(
        {settings_text(run.settings), metric_text(run.metric, data.metric), human_seconds(run.run_seconds)});
  return table;
}

std::optional<TimeSplit> time_split(const RunRecord& run) {
  if (!run.run_seconds || run.epochs.empty()) return {};
  TimeSplit split{.setup = run.setup_seconds.value_or(0), .logging = run.logging_seconds};
  double training = 0;
  for (const EpochRecord& epoch : run.epochs) {
    training += epoch["epoch_seconds"].value_or(0);
    split.data_wait += epoch["data_wait_seconds"].value_or(0);
    split.communication += epoch["communication_seconds"].value_or(0);
  }
  split.compute = std::max(0.0, training - split.data_wait - split.communication);
  split.rest = std::max(0.0, *run.run_seconds - split.setup - training - split.logging);
  return split;
}

ChartTable times_table(const ReportData& data, std::size_t& left_out, std::size_t most) {
  struct Row {
    std::size_t run;
    TimeSplit split;
  };
  std::vector<Row> rows;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    if (const auto split = time_split(data.records[run])) rows.push_back({run, *split});
  }
  left_out = rows.size() > most ? rows.size() - most : 0;
  if (left_out > 0) {
    const auto longer = [&](const Row& a, const Row& b) {
      return *data.records[a.run].run_seconds > *data.records[b.run].run_seconds;
    };
    std::stable_sort(rows.begin(), rows.end(), longer);
    rows.resize(most);
  }
  const bool any_communication =
      std::ranges::any_of(rows, [](const Row& row) { return row.split.communication > 0; });
  ChartTable table{{"run", "label", "total", "part", "seconds", "text", "order"}};
  for (const auto& [run, split] : rows) {
    const std::string total = human_seconds(*data.records[run].run_seconds);
    std::vector<std::pair<const char*, double>> parts = {{"computing", split.compute},
                                                         {"waiting for data", split.data_wait},
                                                         {"set-up", split.setup},
                                                         {"logging", split.logging},
                                                         {"validation and rest", split.rest}};
    if (any_communication)
      parts.insert(parts.begin() + 2, {"waiting for other devices", split.communication});
    for (std::size_t i = 0; i < parts.size(); ++i)
      table.rows.push_back({run, run_label(data, run, true), total, parts[i].first, parts[i].second,
                            human_seconds(parts[i].second), i});
  }
  return table;
}

}  // namespace sweep
