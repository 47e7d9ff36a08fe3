#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <span>

#include "core/base/text.h"
#include "runmanager/answers/statistics.h"
#include "runmanager/config/params.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/report/charts.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPlaces = 12;  // values of a setting that each have their place

// The values of an axis, one per run, and how Vega shows them.
struct ChartAxis {
  std::string title, scale;  // of Vega: "point", "linear" or "log"
  std::vector<Json> values;
  std::string format = ",~r";  // "" for texts
  bool is_down = false;        // the smallest value is at the top
};

// A setting of `runs`. Numbers that a search draws, and many others, are shown by value or by their
// logarithm: as the search draws them, else by logarithm over two powers of ten or more; few others, and
// texts, each have their place. The value of a run without the setting is "", among numbers null.
ChartAxis setting_axis(const ReportData& data, const std::string& key, const std::vector<std::size_t>& runs) {
  std::vector<Json> texts, numbers;
  std::set<double> different;
  bool are_numbers = true;
  for (const std::size_t run : runs) {
    const std::string text = setting_text(data.runs[run], key);
    std::optional<double> number = number_in<double>(text);
    if (number && !std::isfinite(*number)) number.reset();
    // Vega's axes keep their ticks by text in an object, which has no place of this name: a blank without a
    // width gives it another.
    texts.emplace_back(text == "__proto__" ? text + "\u200b" : text);
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

ChartAxis metric_axis(const ReportData& data, const Metric& metric, const std::vector<std::size_t>& runs) {
  ChartAxis axis{axis_title(metric), "linear", {}};
  if (metric.unit == MetricUnit::kShare) axis.format = ".3~%";
  axis.is_down = !goal_for(metric, data.goals).largest_is_best;
  for (const std::size_t run : runs) axis.values.emplace_back(*run_metric(data.records[run], metric));
  return axis;
}

// The name of the column, and of the scale, that an axis has.
std::string axis_name(std::size_t axis) { return fmt::format("axis{}", axis); }

// Adds a column with the values of each axis.
void add_values(const std::vector<ChartAxis>& axes, ChartTable& table) {
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    table.columns.push_back(axis_name(axis));
    for (std::size_t i = 0; i < table.rows.size(); ++i) table.rows[i].push_back(axes[axis].values[i]);
  }
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

bool has_number(const RunRecord& run, const Metric& metric) {
  const std::optional<double> value = run_metric(run, metric);
  return value && std::isfinite(*value);
}

// A few trials far from all others would press those into a line.
std::optional<double> worst_shown(std::vector<double> values, const Goal& goal) {
  if (values.size() < 4) return {};
  std::ranges::sort(values, [&](double a, double b) { return goal.is_better(a, b); });
  const double best = values.front(), most = values[std::min(values.size() * 9 / 10, values.size() - 2)];
  const double far = values.size() < 20 ? 100 : 4;
  const bool is_far = std::abs(values.back() - best) > far * std::abs(most - best) && most != best;
  return is_far ? std::optional(best + 1.2 * (most - best)) : std::nullopt;
}

std::optional<double> number_of(const Params& params, const std::string& key) {
  const ParamValue* const value = find_param(params, key);
  return value == nullptr ? std::nullopt : param_number(*value);
}

// Whether a number of a run is not always the one it began with.
bool changes(std::span<const Lineage> histories, const std::string& key) {
  return std::ranges::any_of(histories, [&](const Lineage& history) {
    return std::ranges::any_of(history, [&](const Ancestor& piece) {
      return number_of(piece.params, key) != number_of(history[0].params, key);
    });
  });
}

}  // namespace

void add_coordinates(const ReportData& data, Charts& charts) {
  const Metric &metric = data.metric(), &time = metric_named(kEpochSeconds);
  ChartTable lines{{"run", "label", "result", "value"}}, table_of_axes{{"axis", "title", "test"}};
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.status != RunStatus::kCompleted || !has_number(record, metric) || !has_number(record, time))
      continue;
    const std::optional<double> value = run_metric(record, metric);
    lines.rows.push_back({run, run_label(data, run, true), metric_text(metric, value), *value});
    runs.push_back(run);
  }
  if (runs.size() < 2 || data.keys.empty()) return;
  std::vector<ChartAxis> axes;
  for (const std::string& key : data.keys) axes.push_back(setting_axis(data, key, runs));
  if (&metric != &time) axes.push_back(metric_axis(data, time, runs));
  axes.push_back(metric_axis(data, metric, runs));
  add_values(axes, lines);
  Chart& chart =
      add_chart(charts, "coordinates", fmt::format("{} runs across {} axes", runs.size(), axes.size()), {},
                {{"better", data.goals[0].largest_is_best ? "larger" : "smaller"}});
  const Json models = std::exchange(chart.spec.at("axes"), Json::array());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ChartAxis& axis = axes[i];
    const std::string name = axis_name(i);
    const bool has_places = axis.scale == "point";
    // How Vega's vlSelectionTest tells whether a run is in a part of the axis: of a list of values, or a
    // range.
    table_of_axes.rows.push_back({name, axis.title, has_places ? "E" : "R"});
    chart.columns.push_back({axis.title, name});
    chart.spec.at("scales").push_back(
        {{"name", name},
         {"type", axis.scale},
         {"domain", has_places ? places_of(axis) : Json{{"data", "lines"}, {"field", name}}},
         {"range", {{{"signal", "height"}}, 0}},
         {"zero", false},
         {"nice", true},
         {"reverse", axis.is_down}});
    for (Json model : models) {
      model["scale"] = name;
      model["offset"] = {{"signal", fmt::format("scale('x', '{}') - width", name)}};
      if (!axis.format.empty()) model["format"] = axis.format;
      if (axis.scale == "linear") set_labels(model);
      // By its place: Vega takes a text such as "constructor" for a property that its own objects have.
      if (model.contains("titleY")) model["title"] = {{"signal", fmt::format("data('axes')[{}].title", i)}};
      chart.spec.at("axes").push_back(std::move(model));
    }
  }
  charts.tables["axes"] = std::move(table_of_axes);
  charts.tables["lines"] = std::move(lines);
}

void add_search(const ReportData& data, Charts& charts) {
  if (!data.is_search) return;
  const Metric& metric = data.metric();
  const Goal& goal = data.goals[0];
  ChartTable trials{{"trial", "run", "label", "value", "text", "best", "ended", "is_best"}};
  std::vector<std::size_t> runs;
  std::vector<double> values;
  std::optional<double> best;  // so far, of completed trials
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    const RunRecord& record = data.records[run];
    const std::optional<double> value = run_metric(record, metric);
    if (!has_ended(record.status) || !value || !std::isfinite(*value)) continue;
    if (record.status == RunStatus::kCompleted && (!best || goal.is_better(*value, *best))) best = value;
    trials.rows.push_back({run + 1, run, run_label(data, run, true), *value, metric_text(metric, value),
                           chart_number(best), to_string(record.status), data.best == run});
    runs.push_back(run);
    values.push_back(*value);
  }
  if (runs.size() < 2) return;
  Json signals = {{"axisFormat", axis_format(metric)}};
  if (const std::optional<double> worst = worst_shown(std::move(values), goal)) {
    signals[goal.largest_is_best ? "lowest" : "highest"] = *worst;
    charts.remarks.push_back(fmt::format("Trials {} {:.4g} are shown at the edge of their charts.",
                                         goal.largest_is_best ? "below" : "above", *worst));
  }
  add_chart(charts, "progress", fmt::format("{} of {} trials, and the best so far", metric.name, runs.size()),
            {{"trial", "trial"}, {"settings", "label"}, {"result", "text"}, {"ended", "ended"}}, signals);
  if (data.importances) {
    add_chart(charts, "importances", "importance of each setting",
              {{"setting", "setting"}, {"importance", "text"}, {"best trials have", "best"}});
    ChartTable table{{"row", "setting", "share", "text", "best", "may_be_chance"}};
    for (const Importance& setting : data.importances->settings)
      table.rows.push_back({table.rows.size(), setting.key, setting.share, share_text(setting.share),
                            setting.best, setting.may_be_chance});
    charts.tables["importances"] = std::move(table);
  }
  std::vector<ChartAxis> axes;
  for (const std::string& key : data.keys) axes.push_back(setting_axis(data, key, runs));
  add_values(axes, trials);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ChartAxis& axis = axes[i];
    signals["field"] = axis_name(i);
    Chart& chart = add_chart(charts, "slice", fmt::format("{} by {}", metric.name, axis.title),
                             {{axis.title, axis_name(i)}, {"result", "text"}, {"trial", "trial"}}, signals);
    chart.id += fmt::format("-{}", i);
    chart.title = axis.title;
    Json& scale = named(chart.spec.at("scales"), "x");
    scale["type"] = axis.scale;
    if (axis.scale == "point") {
      scale["domain"] = places_of(axis);
      std::erase(scale["domain"].get_ref<Json::array_t&>(), Json(""));
    } else {
      scale["domain"]["field"] = axis_name(i);
      scale.update({{"zero", false}, {"padding", 8}});
    }
    if (!axis.format.empty()) chart.spec.at("axes")[0]["format"] = axis.format;
  }
  charts.tables["trials"] = std::move(trials);
}

void add_schedules(const ReportData& data, Charts& charts) {
  ChartTable table{{"run", "label", "epoch", "is_best", "ended"}};
  std::vector<std::size_t> runs;
  std::vector<Lineage> histories;  // of each run, which itself comes last
  for (std::size_t run = 0; run < data.records.size(); ++run) {
    const RunRecord& record = data.records[run];
    if (record.epochs.empty()) continue;
    runs.push_back(run);
    histories.push_back(lineage_of(record.config));
    histories.back().push_back({record.name, record.epochs.back().epoch, record.params});
  }
  std::vector<std::string> keys;
  std::ranges::copy_if(data.keys, std::back_inserter(keys),
                       [&](const std::string& key) { return changes(histories, key); });
  if (keys.empty()) return;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name = axis_name(i);
    Chart& chart = add_chart(charts, "schedule", fmt::format("{} over the epochs", keys[i]),
                             {{"run", "label"}, {"from epoch", "epoch"}, {keys[i], name}}, {{"field", name}});
    chart.id += fmt::format("-{}", i);
    chart.title = keys[i];
    Json& scale = named(chart.spec.at("scales"), "y");
    scale["type"] = setting_axis(data, keys[i], runs).scale == "log" ? "log" : "linear";
    scale["domain"]["field"] = name;
    table.columns.push_back(name);
  }
  // Where each run begins, where it or a run that it continues got other settings, and its end.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    int begin = 0;
    const auto add = [&](int epoch, const Params& params) {
      table.rows.push_back({runs[i], run_label(data, runs[i], true), epoch, data.best == runs[i],
                            to_string(data.records[runs[i]].status)});
      for (const std::string& key : keys) table.rows.back().push_back(chart_number(number_of(params, key)));
    };
    for (const Ancestor& piece : histories[i]) {
      add(begin, piece.params);
      begin = piece.until;
    }
    add(begin, histories[i].back().params);
  }
  charts.tables["schedules"] = std::move(table);
}

}  // namespace sweep
