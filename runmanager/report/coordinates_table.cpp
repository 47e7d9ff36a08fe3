#include "runmanager/report/coordinates_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "runmanager/config/params.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNames = 12;  // values of a setting that each have a tick

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

struct Axis {
  std::string title;
  std::function<double(std::size_t run)> y;
  std::function<std::string(std::size_t run)> text;
  std::vector<std::pair<double, std::string>> ticks;  // y, text
};

// Values in steps of 1, 2 or 5 times a power of ten.
std::vector<double> round_values(double low, double high) {
  const double rough = (high - low) / 4;
  if (!(rough > 0)) return {low};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> values;
  const auto first = static_cast<long>(std::ceil(low / step - 1e-9));
  const auto last = static_cast<long>(std::floor(high / step + 1e-9));
  for (long i = first; i <= last; ++i) values.push_back(static_cast<double>(i) * step);
  return values;
}

// An axis of numbers. `down`: the smallest is at the top. `by_log`: for values above 0.
Axis number_axis(std::string title, const std::function<double(std::size_t)>& value,
                 const std::function<std::string(double)>& text,
                 const std::function<std::string(double)>& tick_text, const std::vector<std::size_t>& runs,
                 bool down, bool by_log) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const std::size_t run : runs) {
    low = std::min(low, value(run));
    high = std::max(high, value(run));
  }
  const auto scaled = [by_log](double x) { return by_log ? std::log10(x) : x; };
  const auto place = [=](double x) {
    const double span = scaled(high) - scaled(low);
    const double y = span > 0 ? (scaled(x) - scaled(low)) / span : 0.5;
    return down ? 1 - y : y;
  };
  Axis axis{std::move(title),
            [=](std::size_t run) { return place(value(run)); },
            [=](std::size_t run) { return text(value(run)); },
            {}};
  std::vector<double> at;
  if (by_log) {
    const auto last = static_cast<int>(std::floor(std::log10(high)));
    for (int power = static_cast<int>(std::ceil(std::log10(low))); power <= last; ++power)
      at.push_back(std::pow(10, power));
  } else {
    at = round_values(low, high);
  }
  if (at.size() < 2) at = low < high ? std::vector<double>{low, high} : std::vector<double>{low};
  for (const double x : at) {
    // Of values that look the same, one.
    if (axis.ticks.empty() || axis.ticks.back().second != tick_text(x))
      axis.ticks.emplace_back(place(x), tick_text(x));
  }
  return axis;
}

Axis setting_axis(const ReportData& data, const std::string& key, const std::vector<std::size_t>& runs) {
  std::vector<std::string> values;
  std::vector<double> numbers;
  for (const std::size_t run : runs) {
    const std::string text = setting_text(data.runs[run], key);
    if (std::find(values.begin(), values.end(), text) != values.end()) continue;
    values.push_back(text);
    if (const auto number = number_in(text)) numbers.push_back(*number);
  }
  const bool numeric = numbers.size() == values.size();
  if (numeric && values.size() > kMostNames) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    const bool by_log = *low > 0 && *high / *low >= 100;
    return number_axis(
        key, [&data, key](std::size_t run) { return *number_in(setting_text(data.runs[run], key)); },
        [](double value) { return param_text(value); },
        [](double value) { return fmt::format("{:.4g}", value); }, runs, false, by_log);
  }
  if (numeric)
    std::stable_sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
      return *number_in(a) < *number_in(b);
    });
  const auto place = [values](const std::string& value) {
    const auto index = std::find(values.begin(), values.end(), value) - values.begin();
    return values.size() < 2 ? 0.5 : static_cast<double>(index) / static_cast<double>(values.size() - 1);
  };
  const auto text = [&data, key](std::size_t run) { return setting_text(data.runs[run], key); };
  Axis axis{key, [=](std::size_t run) { return place(text(run)); }, text, {}};
  const std::size_t step = (values.size() + 2 * kMostNames - 1) / (2 * kMostNames);
  for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(step, 1))
    axis.ticks.emplace_back(place(values[i]), values[i]);
  return axis;
}

// Without digits that say nothing on an axis of round values.
std::string short_metric_text(double value, const std::string& metric) {
  if (is_time(metric)) return metric_text(value, metric);
  return metric.ends_with("accuracy") ? fmt::format("{:.4g}%", 100 * value) : fmt::format("{:.5g}", value);
}

Axis metric_axis(const ReportData& data, const std::string& metric, const std::vector<std::size_t>& runs) {
  return number_axis(
      metric_title(metric),
      [&data, metric](std::size_t run) { return *run_metric(data.records[run], metric); },
      [metric](double value) { return metric_text(value, metric); },
      [metric](double value) { return short_metric_text(value, metric); }, runs, !larger_is_better(metric),
      false);
}

bool has_number(const RunRecord& run, const std::string& metric) {
  const std::optional<double> value = run_metric(run, metric);
  return value && std::isfinite(*value);
}

}  // namespace

Coordinates coordinates_of(const ReportData& data) {
  Coordinates result{.axes = {{"axis", "title"}},
                     .ticks = {{"axis", "y", "text"}},
                     .points = {{"run", "axis", "y", "text"}},
                     .lines = {{"run", "label", "value", "text"}}};
  const std::string time = "epoch_seconds";
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.status == RunStatus::kCompleted && has_number(record, data.metric) && has_number(record, time))
      runs.push_back(run);
  }
  if (runs.empty()) return result;
  std::vector<Axis> axes;
  for (const std::string& key : data.keys) axes.push_back(setting_axis(data, key, runs));
  if (data.metric != time) axes.push_back(metric_axis(data, time, runs));
  axes.push_back(metric_axis(data, data.metric, runs));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result.axes.rows.push_back({i, axes[i].title});
    for (const auto& [y, text] : axes[i].ticks) result.ticks.rows.push_back({i, y, text});
    for (const std::size_t run : runs)
      result.points.rows.push_back({run, i, axes[i].y(run), axes[i].text(run)});
  }
  for (const std::size_t run : runs) {
    const std::optional<double> value = run_metric(data.records[run], data.metric);
    result.lines.rows.push_back(
        {run, run_label(data, run, true), chart_number(value), metric_text(value, data.metric)});
  }
  return result;
}

}  // namespace sweep
