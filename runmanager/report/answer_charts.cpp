#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/text.h"
#include "runmanager/answers/statistics.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/report/charts.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kMaxPairs = 24, kMaxTimedRuns = 40, kMaxLevels = 40;

std::string settings_text(const Settings& settings) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : settings)
    if (!value.empty()) parts.push_back(fmt::format("{}={}", key, value));  // It may depend on another.
  return parts.empty() ? "all" : fmt::format("{}", fmt::join(parts, ", "));
}

// What a chart of means shows: the values of the runs, and as much on both sides, but no share that cannot
// be. The intervals of a few runs may be many times as long.
std::pair<double, double> shown_range(const ReportData& data) {
  std::vector<double> values;
  for (const RunRecord& run : data.records) {
    const std::optional<double> value = run_metric(run, data.metric());
    if (run.status == RunStatus::kCompleted && value && std::isfinite(*value)) values.push_back(*value);
  }
  const auto [least, most] = std::ranges::minmax(values);
  double low = least - (most - least), high = most + (most - least);
  if (data.metric().unit == MetricUnit::kShare) {
    low = std::max(low, std::min(least, 0.0));
    high = std::min(high, std::max(most, 1.0));
  }
  return {low, high};
}

// The levels of an effect that the chart has room for, in their order: the best ones. No browser draws
// thousands below each other.
std::vector<std::size_t> shown_levels(const Effect& effect, const Goal& goal, Charts& charts) {
  std::vector<std::size_t> shown(effect.levels.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() <= kMaxLevels) return shown;
  std::ranges::stable_sort(shown, {},
                           [&](std::size_t level) { return goal.cost(effect.levels[level].metric.mean); });
  shown.resize(kMaxLevels);
  std::ranges::sort(shown);
  charts.remarks.push_back(fmt::format("The {} best of the {} values of {} are shown.", kMaxLevels,
                                       effect.levels.size(), effect.keys[0]));
  return shown;
}

std::string faster_text(const ComparedValue& value, const ComparedPair& pair) {
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

void add_goals(const ReportData& data, Charts& charts) {
  if (data.goals.size() < 2) return;
  const Metric &x = *data.goals[1].metric, &y = *data.goals[0].metric;
  const std::vector<std::size_t> front = front_runs(data.records, data.goals);
  ChartTable table{{"run", "label", "x", "y", "xText", "yText", "front"}};
  for (std::size_t run = 0; run < data.records.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.status != RunStatus::kCompleted || !goal_values(record, data.goals)) continue;
    const std::optional<double> across = run_metric(record, x), up = run_metric(record, y);
    table.rows.push_back({run, run_label(data, run, true), *across, *up, metric_text(x, across),
                          metric_text(y, up), std::ranges::find(front, run) != front.end()});
  }
  if (table.rows.size() < 2) return;
  add_chart(charts, "goals", fmt::format("{} against {} of {} runs", y.name, x.name, table.rows.size()),
            {{"run", "label"}, {axis_title(x), "xText"}, {axis_title(y), "yText"}, {"front", "front"}},
            {{"xTitle", axis_title(x)},
             {"yTitle", axis_title(y)},
             {"xFormat", axis_format(x)},
             {"yFormat", axis_format(y)}});
  charts.tables["goals"] = std::move(table);
}

void add_effects(const ReportData& data, Charts& charts) {
  if (!data.effects) return;
  const Metric& metric = data.metric();
  const double middle = data.effects->mean;  // of all runs
  // A row that names the setting (level false), and one for each of its values.
  const auto [lowest, highest] = shown_range(data);
  ChartTable levels{{"row", "level", "setting", "value", "share", "mean", "low", "high", "from", "to", "text",
                     "best", "middle"}};
  for (const Effect* effect : sorted_effects(data, 1)) {
    levels.rows.push_back({levels.rows.size(), false, effect->keys[0],
                           fmt::format("{} of the differences", share_text(effect->share)), effect->share,
                           nullptr, nullptr, nullptr, nullptr, nullptr, "", false, middle});
    for (const std::size_t i : shown_levels(*effect, data.goals[0], charts)) {
      const EffectLevel& level = effect->levels[i];
      std::optional<double> low, high, from, to;
      if (const auto& interval = level.metric.interval) {
        std::tie(low, high) = *interval;
        from = std::max(*low, lowest);
        to = std::min(*high, highest);
      }
      levels.rows.push_back({levels.rows.size(), true, effect->keys[0], level.value, effect->share,
                             chart_number(level.metric.mean), chart_number(low), chart_number(high),
                             chart_number(from), chart_number(to), metric_text(metric, level.metric.mean),
                             effect->share >= kHardlyAnything && i == effect->best, middle});
    }
  }
  const char* const share = metric.unit == MetricUnit::kShare ? "share" : "";
  add_chart(charts, "effects", fmt::format("mean {} of each value of each setting", metric.name),
            {{"setting", "setting"},
             {"value", "value"},
             {"mean", "text"},
             {"95 % from", "low", share},
             {"to", "high", share}},
            {{"metric", fmt::format("Mean {}", metric.name)}, {"axisFormat", axis_format(metric)}});
  charts.tables["levels"] = std::move(levels);
  if (const std::size_t left_out = data.effects->left_out.size(); left_out > 0)
    charts.remarks.push_back(
        fmt::format("Effects count {} of each combination, as many as all have; {} left out.",
                    counted(data.effects->repeats, "repeat"),
                    left_out == 1 ? "1 run is" : fmt::format("{} runs are", left_out)));

  const std::vector<const Effect*> pairs = sorted_effects(data, 2);
  const bool tested = std::ranges::any_of(pairs, [](const Effect* effect) { return effect->p.has_value(); });
  ChartTable& interactions = charts.tables["interactions"] = {{"settings together", "share"}};
  if (tested) interactions.columns.emplace_back("p");
  for (const Effect* effect : pairs) {
    auto& row = interactions.rows.emplace_back();
    row = {fmt::format("{} × {}", effect->keys[0], effect->keys[1]), share_text(effect->share)};
    if (tested) row.emplace_back(p_text(effect->p, "–"));
  }
  ChartTable& front = charts.tables["front"] = {{"settings", std::string(metric.name), "time of the run"}};
  for (const FrontRun& run : data.effects->front)
    front.rows.push_back(
        {settings_text(run.settings), metric_text(metric, run.metric), human_seconds(run.run_seconds)});
}

void add_comparison(const ReportData& data, Charts& charts) {
  if (!data.compared) return;
  std::size_t row = 0, all = 0;
  ChartTable table{{"row", "place", "label", "side", "seconds", "text", "ratio"}};
  for (const ComparedValue& value : data.compared->values) {
    all += value.pairs.size();
    for (const ComparedPair& pair : value.pairs) {
      const auto& [base, other] = pair.metric;
      if (!base || !other || row == kMaxPairs) continue;
      std::string label = settings_text(pair.settings);
      if (!pair.notes.empty()) label += fmt::format(" (but {})", fmt::join(pair.notes, "; "));
      const std::string ratio = faster_text(value, pair);
      const auto add = [&](int place, const std::string& side, double seconds, int jobs) {
        const std::string text = (jobs > 1 ? "~" : "") + human_seconds(seconds);
        table.rows.push_back({row, place, label, side, seconds, text, ratio});
      };
      add(0, value.base, *base, pair.jobs.base);
      add(1, value.other, *other, pair.jobs.other);
      ++row;
    }
  }
  if (row == 0) return;
  const Metric& metric = *data.compared->metric;
  const std::string title =
      axis_title(metric) + (metric.key == kEpochSeconds ? ", median without the first" : "");
  add_chart(charts, "comparison", fmt::format("{} of {} pairs of runs", metric.name, row),
            {{"runs", "label"}, {"on", "side"}, {title, "text"}}, {{"title", title}});
  if (all > row) charts.remarks.push_back(fmt::format("The comparison shows {} of {} pairs.", row, all));
  charts.tables["pairs"] = std::move(table);
}

void add_times(const ReportData& data, Charts& charts) {
  std::vector<std::size_t> runs;
  const auto has_time = [](const EpochRecord& epoch) { return epoch[kEpochSeconds].has_value(); };
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.run_seconds && std::ranges::any_of(record.epochs, has_time)) runs.push_back(run);
  }
  if (runs.empty()) return;
  if (runs.size() > kMaxTimedRuns) {
    std::ranges::stable_sort(runs, std::ranges::greater(),
                             [&](std::size_t run) { return *data.records[run].run_seconds; });
    charts.remarks.push_back(fmt::format("Times are those of the longest runs; {} others are left out.",
                                         runs.size() - kMaxTimedRuns));
    runs.resize(kMaxTimedRuns);
  }
  const auto sum_of = [&](std::size_t run, std::string_view key) {
    double sum = 0;
    for (const EpochRecord& epoch : data.records[run].epochs) sum += epoch[key].value_or(0);
    return sum;
  };
  ChartTable table{{"run", "label", "total", "part", "seconds", "text", "order"}};
  std::set<std::string_view> known = {};  // the parts that any run has
  for (const std::size_t run : runs) {
    const RunRecord& record = data.records[run];
    const double total = *record.run_seconds, setup = record.setup_seconds.value_or(0);
    const double data_wait = sum_of(run, "data_wait_seconds"),
                 communication = sum_of(run, "communication_seconds");
    // The record of a program with many steps has only some of them, but half of those that are kept or more.
    constexpr std::size_t kFewestOfMany = 500;
    const EpochRecord& last = record.epochs.back();
    const bool is_part = record.epochs.size() >= kFewestOfMany && last["step"];
    const double sum = sum_of(run, kEpochSeconds),
                 training = is_part ? last["run_seconds"].value_or(sum) : sum;
    // What a program does is not known, only when it reports.
    const bool is_program = record.config.contains("command");
    const std::pair<const char*, double> parts[] = {
        {is_program ? "until the last report" : "computing",
         std::max(0.0, training - data_wait - communication)},
        {"waiting for data", data_wait},
        {"waiting for other devices", communication},
        {"set-up", setup},
        {"logging", record.logging_seconds},
        {is_program ? "after the last report" : "validation and rest",
         std::max(0.0, total - setup - training - record.logging_seconds)}};
    for (std::size_t i = 0; i < std::size(parts); ++i) {
      const auto& [part, seconds] = parts[i];
      if (i == 0 || seconds > 0) known.insert(part);
      table.rows.push_back(
          {run, run_label(data, run, true), human_seconds(total), part, seconds, human_seconds(seconds), i});
    }
  }
  std::erase_if(table.rows, [&known](const auto& row) {
    return !known.contains(row[3].template get_ref<const std::string&>());
  });
  add_chart(charts, "times", "where the time of each run went",
            {{"run", "label"}, {"part", "part"}, {"time", "text"}, {"of", "total"}});
  charts.tables["parts"] = std::move(table);
}

}  // namespace sweep
