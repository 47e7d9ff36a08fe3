#include "runmanager/report/coordinates_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "runmanager/config/params.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPlaces = 12;  // values of a setting that each have their place

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

// The values of an axis, one per run, and how Vega shows them.
struct Axis {
  std::string title, scale;
  std::vector<Json> values;
  std::string format = ",~r";  // "" for texts
  bool is_down = false;        // the smallest value is at the top
};

Axis setting_axis(const ReportData& data, const std::string& key, const std::vector<std::size_t>& runs) {
  std::vector<Json> texts, numbers;
  std::set<double> different;
  for (const std::size_t run : runs) {
    const std::string text = setting_text(data.runs[run], key);
    texts.emplace_back(text);
    if (const auto number = number_in(text)) {
      numbers.emplace_back(*number);
      different.insert(*number);
    }
  }
  if (numbers.size() < texts.size()) return {key, "point", std::move(texts), ""};
  if (different.size() <= kMaxPlaces) return {key, "point", std::move(numbers), "~g"};
  const bool by_log = *different.begin() > 0 && *different.rbegin() / *different.begin() >= 100;
  if (by_log) return {key, "log", std::move(numbers), "~g"};
  return {key, "linear", std::move(numbers)};
}

Axis metric_axis(const ReportData& data, const std::string& metric, const std::vector<std::size_t>& runs) {
  Axis axis{metric_axis_title(metric), "linear", {}};
  if (metric.ends_with("accuracy")) axis.format = ".3~%";
  axis.is_down = !larger_is_better(metric);
  for (const std::size_t run : runs) axis.values.emplace_back(*run_metric(data.records[run], metric));
  return axis;
}

bool has_number(const RunRecord& run, const std::string& metric) {
  const std::optional<double> value = run_metric(run, metric);
  return value && std::isfinite(*value);
}

}  // namespace

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
  std::vector<Axis> axes;
  for (const std::string& key : data.keys) axes.push_back(setting_axis(data, key, runs));
  if (data.metric != time) axes.push_back(metric_axis(data, time, runs));
  axes.push_back(metric_axis(data, data.metric, runs));
  for (Axis& axis : axes) {
    const std::string name = fmt::format("axis{}", result.scales.size());
    result.axes.rows.push_back({name, axis.title, axis.scale == "point" ? "E" : "R"});
    result.runs.columns.push_back(name);
    for (std::size_t i = 0; i < runs.size(); ++i) result.runs.rows[i].push_back(std::move(axis.values[i]));
    result.scales.push_back({{"name", name},
                             {"type", axis.scale},
                             {"domain", {{"data", "runs"}, {"field", name}, {"sort", !axis.format.empty()}}},
                             {"range", {{{"signal", "height"}}, 0}},
                             {"zero", false},
                             {"nice", true},
                             {"reverse", axis.is_down}});
    result.formats.push_back(axis.format);
  }
  return result;
}

}  // namespace sweep
