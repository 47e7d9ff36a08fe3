#include "runmanager/report/coordinates_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "runmanager/config/params.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPlaces = 12;  // values of a setting that each have their place

ChartAxis metric_axis(const ReportData& data, const std::string& metric,
                      const std::vector<std::size_t>& runs) {
  ChartAxis axis{metric_axis_title(metric), "linear", {}};
  if (metric.ends_with("accuracy")) axis.format = ".3~%";
  axis.is_down = !goal_for(metric_named(metric), data.goals).largest_is_best;
  for (const std::size_t run : runs) axis.values.emplace_back(*run_metric(data.records[run], metric));
  return axis;
}

// The values that each have their place: numbers in their order, texts in that of the runs.
Json places_of(const ChartAxis& axis) {
  Json places = Json::array();
  std::set<Json> different;
  for (const Json& value : axis.values) {
    if (!value.is_null() && different.insert(value).second) places.push_back(value);
  }
  return axis.format.empty() ? places : Json(different);
}

bool has_number(const RunRecord& run, const std::string& metric) {
  const std::optional<double> value = run_metric(run, metric);
  return value && std::isfinite(*value);
}

}  // namespace

ChartAxis setting_axis(const ReportData& data, const std::string& key, const std::vector<std::size_t>& runs) {
  std::vector<Json> texts, numbers;
  std::set<double> different;
  bool are_numbers = true;
  for (const std::size_t run : runs) {
    const std::string text = setting_text(data.runs[run], key);
    std::optional<double> number = number_in<double>(text);
    if (number && !std::isfinite(*number)) number.reset();
    texts.emplace_back(text);
    numbers.push_back(chart_number(number));
    if (number) different.insert(*number);
    are_numbers = are_numbers && (number || text.empty());
  }
  if (!are_numbers || different.empty()) return {key, "point", std::move(texts), ""};
  const auto range = data.by_logarithm.find(key);
  const bool is_drawn = range != data.by_logarithm.end();
  if (!is_drawn && different.size() <= kMaxPlaces) return {key, "point", std::move(numbers), "~g"};
  const bool by_log =
      is_drawn ? range->second : *different.begin() > 0 && *different.rbegin() / *different.begin() >= 100;
  if (by_log) return {key, "log", std::move(numbers), "~g"};
  return {key, "linear", std::move(numbers)};
}

Coordinates coordinates_of(const ReportData& data) {
  Coordinates result{.axes = {{"axis", "title", "test"}},
                     .runs = {{"run", "label", "result", "value"}},
                     .scales = {},
                     .formats = {}};
  const std::string time = "epoch_seconds";
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.status == RunStatus::kCompleted && has_number(record, data.metric) && has_number(record, time))
      runs.push_back(run);
  }
  for (const std::size_t run : runs) {
    const std::optional<double> value = run_metric(data.records[run], data.metric);
    result.runs.rows.push_back({run, run_label(data, run, true), metric_text(value, data.metric), *value});
  }
  std::vector<ChartAxis> axes;
  for (const std::string& key : data.keys) axes.push_back(setting_axis(data, key, runs));
  if (data.metric != time) axes.push_back(metric_axis(data, time, runs));
  axes.push_back(metric_axis(data, data.metric, runs));
  for (ChartAxis& axis : axes) {
    const std::string name = fmt::format("axis{}", result.scales.size());
    result.axes.rows.push_back({name, axis.title, axis.scale == "point" ? "E" : "R"});
    result.runs.columns.push_back(name);
    const Json field = {{"data", "runs"}, {"field", name}};
    result.scales.push_back({{"name", name},
                             {"type", axis.scale},
                             {"domain", axis.scale == "point" ? places_of(axis) : field},
                             {"range", {{{"signal", "height"}}, 0}},
                             {"zero", false},
                             {"nice", true},
                             {"reverse", axis.is_down}});
    result.formats.push_back(axis.format);
    for (std::size_t i = 0; i < runs.size(); ++i) result.runs.rows[i].push_back(std::move(axis.values[i]));
  }
  return result;
}

}  // namespace sweep
