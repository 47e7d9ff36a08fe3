#include "runmanager/report/chart_specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json/json_text.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/report/answer_tables.h"
#include "runmanager/report/curves_table.h"
#include "runmanager/report/page.h"
#include "runmanager/report/setting_tables.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string axis_format(bool is_share) { return is_share ? ".1~%" : ",~r"; }

std::string axis_format(const std::string& metric) { return axis_format(metric.ends_with("accuracy")); }

Json& named(Json& list, const std::string& name) {
  for (Json& item : list) {
    if (item.at("name") == name) return item;
  }
  return list.emplace_back(Json{{"name", name}});
}

// charts/KIND.vg.json with values for its signals.
Json spec_of(const std::string& kind, const Json& signals = Json::object()) {
  const std::string file = "charts/" + kind + ".vg.json";
  Json spec = parse_json_text(embedded_file(file), file);
  for (const auto& [name, value] : signals.items()) named(spec.at("signals"), name)["value"] = value;
  // The digits of what a diverging run has would be cut off.
  Json none = Json::array();
  constexpr const char* kLabel = "abs(datum.value) < 1e6 ? datum.label : format(datum.value, '.2~e')";
  for (Json& axis : spec.contains("axes") ? spec["axes"] : none)
    if (axis.contains("format") && axis["format"].is_object())
      axis["encode"]["labels"]["update"]["text"] = {{"signal", kLabel}};
  return spec;
}

// The only chart of its kind. `data`: the names of its tables, in charts/KIND.vg.json and in Charts.
Chart chart_of(const std::string& kind, std::string summary,
               std::vector<std::pair<std::string, std::string>> data, const Json& signals = Json::object()) {
  return {.id = kind,
          .kind = kind,
          .summary = std::move(summary),
          .spec = spec_of(kind, signals),
          .data = std::move(data)};
}

// The setting that changes most, or the first one.
std::string colour_key(const ReportData& data) {
  if (data.importances) return data.importances->settings.front().key;
  if (!data.effects) return data.keys.empty() ? "" : data.keys.front();
  return sorted_effects(data, 1).front()->keys[0];
}

// A diverging run would press all others to the ground: the value above which a chart is cut, if a few points
// are far above all others. Among few points the largest is cut only if it is out of all proportion.
std::optional<double> highest_shown(const ChartTable& points, const std::string& measure) {
  std::vector<double> values;
  for (const auto& row : points.rows) {
    if (row[2] == measure) values.push_back(row[4].get<double>());
  }
  if (values.size() < 3) return {};
  std::sort(values.begin(), values.end());
  const double most = values[std::min(values.size() * 95 / 100, values.size() - 2)];
  const double far = values.size() < 20 ? 100 : 5;
  return values.back() > far * most && most > 0 ? std::optional(1.5 * most) : std::nullopt;
}

void add_curves(const ReportData& data, Charts& charts) {
  const std::vector<CurveSeries> series = curve_series(data);
  Curves curves = curves_table(data, series);
  if (curves.points.rows.empty()) return;
  const bool validated = std::any_of(curves.points.rows.begin(), curves.points.rows.end(),
                                     [](const auto& row) { return row[1] == "validation"; });
  const std::string position = curves.are_steps ? "step" : "epoch";
  constexpr std::size_t kMaxWithTraining = 24;
  for (const CurveMeasure& measure : curve_measures(data)) {
    Json signals = {{"measure", measure.name},
                    {"position", position},
                    {"axisFormat", axis_format(measure.is_share)},
                    {"numberFormat", measure.is_share ? ".2%" : ".4~g"},
                    {"training", !validated || series.size() <= kMaxWithTraining},
                    {"validation", validated}};
    if (const auto highest = highest_shown(curves.points, measure.name); highest && !measure.is_share) {
      signals["highest"] = *highest;
      charts.remarks.push_back(
          fmt::format("{}: values above {:.3g} are not shown.", measure.title, *highest));
    }
    Chart chart =
        chart_of("curves", fmt::format("{} by {}, {} lines", measure.title, position, series.size()),
                 {{"series", "series"}, {"points", "points"}}, signals);
    const bool is_own = find_metric(measure.name) == nullptr;  // whose name may have any characters
    chart.id += is_own ? fmt::format("-own-{}", charts.charts.size()) : "-" + measure.name;
    chart.title = measure.title;
    charts.charts.push_back(std::move(chart));
  }
  if (curves.shown < curves.epochs)
    charts.remarks.push_back(
        fmt::format("Curves show {} of up to {} {}s, evenly spaced.", curves.shown, curves.epochs, position));
  charts.tables["series"] = series_table(data, series, colour_key(data));
  charts.tables["points"] = std::move(curves.points);
}

// What a search has besides: how far it came, and what matters.
void add_search(const ReportData& data, Charts& charts) {
  Trials trials = trials_of(data);
  if (trials.rows.rows.size() < 2) return;
  const std::string metric = metric_title(data.metric);
  Json signals = {{"axisFormat", axis_format(data.metric)}};
  if (trials.worst_shown) {
    signals[data.goals[0].largest_is_best ? "lowest" : "highest"] = *trials.worst_shown;
    charts.remarks.push_back(fmt::format("Trials {} {:.4g} are shown at the edge of their charts.",
                                         data.goals[0].largest_is_best ? "below" : "above",
                                         *trials.worst_shown));
  }
  charts.charts.push_back(chart_of(
      "progress", fmt::format("{} of {} trials, and the best so far", metric, trials.rows.rows.size()),
      {{"trials", "trials"}}, signals));
  ChartTable importances = importances_rows(data);
  if (!importances.rows.empty()) {
    charts.charts.push_back(
        chart_of("importances", "importance of each setting", {{"settings", "importances"}}));
    charts.tables["importances"] = std::move(importances);
  }
  for (std::size_t i = 0; i < trials.axes.size(); ++i) {
    const ChartAxis& axis = trials.axes[i];
    signals["field"] = fmt::format("axis{}", i);
    Chart chart =
        chart_of("slice", fmt::format("{} by {}", metric, axis.title), {{"trials", "trials"}}, signals);
    chart.id += fmt::format("-{}", i);
    chart.title = axis.title;
    Json& scale = named(chart.spec.at("scales"), "x");
    scale["type"] = axis.scale;
    scale["domain"]["field"] = signals["field"];
    if (axis.scale == "point")
      scale["domain"]["sort"] = !axis.format.empty();
    else
      scale.update({{"zero", false}, {"padding", 8}});
    if (!axis.format.empty()) chart.spec.at("axes")[0]["format"] = axis.format;
    charts.charts.push_back(std::move(chart));
  }
  charts.tables["trials"] = std::move(trials.rows);
}

// How the settings of a population change.
void add_schedules(const ReportData& data, Charts& charts) {
  Schedules schedules = schedules_of(data);
  for (std::size_t i = 0; i < schedules.axes.size(); ++i) {
    const ChartAxis& axis = schedules.axes[i];
    Chart chart = chart_of("schedule", fmt::format("{} over the epochs", axis.title),
                           {{"schedules", "schedules"}}, {{"field", fmt::format("axis{}", i)}});
    chart.id += fmt::format("-{}", i);
    chart.title = axis.title;
    Json& scale = named(chart.spec.at("scales"), "y");
    scale["type"] = axis.scale == "log" ? "log" : "linear";
    scale["domain"]["field"] = fmt::format("axis{}", i);
    charts.charts.push_back(std::move(chart));
  }
  if (!schedules.axes.empty()) charts.tables["schedules"] = std::move(schedules.rows);
}

void add_coordinates(const ReportData& data, Charts& charts) {
  Coordinates coordinates = coordinates_of(data);
  if (coordinates.runs.rows.size() < 2 || data.keys.empty()) return;
  Chart chart = chart_of(
      "coordinates",
      fmt::format("{} runs across {} axes", coordinates.runs.rows.size(), coordinates.axes.rows.size()),
      {{"axes", "axes"}, {"runs", "lines"}},
      {{"better", data.goals[0].largest_is_best ? "larger" : "smaller"}});
  Json& spec = chart.spec;
  const Json models = std::exchange(spec.at("axes"), Json::array());
  for (std::size_t i = 0; i < coordinates.scales.size(); ++i) {
    const Json &scale = coordinates.scales[i], &name = scale.at("name");
    spec.at("scales").push_back(scale);
    for (Json axis : models) {
      axis["scale"] = name;
      axis["offset"] = {{"signal", fmt::format("scale('x', '{}') - width", name.get<std::string>())}};
      if (!coordinates.formats[i].empty()) axis["format"] = coordinates.formats[i];
      if (axis.contains("titleY")) axis["title"] = coordinates.axes.rows[i][1];
      spec.at("axes").push_back(std::move(axis));
    }
  }
  charts.charts.push_back(std::move(chart));
  charts.tables["axes"] = std::move(coordinates.axes);
  charts.tables["lines"] = std::move(coordinates.runs);
}

// The first two goals of several.
void add_goals(const ReportData& data, Charts& charts) {
  ChartTable goals = goals_table(data);
  if (goals.rows.size() < 2) return;
  const std::string y(data.goals[0].metric->key), x(data.goals[1].metric->key);
  charts.charts.push_back(chart_of(
      "goals", fmt::format("{} against {} of {} runs", metric_title(y), metric_title(x), goals.rows.size()),
      {{"goals", "goals"}},
      {{"xTitle", metric_axis_title(x)},
       {"yTitle", metric_axis_title(y)},
       {"xFormat", axis_format(x)},
       {"yFormat", axis_format(y)}}));
  charts.tables["goals"] = std::move(goals);
}

void add_answers(const ReportData& data, Charts& charts) {
  ChartTable levels = levels_table(data);
  if (!levels.rows.empty()) {
    charts.charts.push_back(chart_of(
        "effects", fmt::format("mean {} of each value of each setting", metric_title(data.metric)),
        {{"levels", "levels"}},
        {{"metric", "Mean " + metric_title(data.metric)}, {"axisFormat", axis_format(data.metric)}}));
    charts.tables["levels"] = std::move(levels);
  }
  ChartTable pairs = comparison_table(data);
  if (!pairs.rows.empty()) {
    const std::string& metric = data.compared->metric;
    charts.charts.push_back(chart_of(
        "comparison", fmt::format("{} of {} pairs of runs", metric_title(metric), pairs.rows.size() / 2),
        {{"pairs", "pairs"}},
        {{"title",
          metric_axis_title(metric) + (metric == kEpochSeconds ? ", median without the first" : "")}}));
    std::size_t all = 0;
    for (const ComparedValue& value : data.compared->values) all += value.pairs.size();
    if (all > pairs.rows.size() / 2)
      charts.remarks.push_back(
          fmt::format("The comparison shows {} of {} pairs.", pairs.rows.size() / 2, all));
    charts.tables["pairs"] = std::move(pairs);
  }
}

void add_times(const ReportData& data, Charts& charts) {
  std::size_t left_out = 0;
  ChartTable parts = times_table(data, left_out);
  if (parts.rows.empty()) return;
  charts.charts.push_back(chart_of("times", "where the time of each run went", {{"parts", "parts"}}));
  if (left_out > 0)
    charts.remarks.push_back(
        fmt::format("Times are those of the longest runs; {} others are left out.", left_out));
  charts.tables["parts"] = std::move(parts);
}

}  // namespace

Charts charts_of(const ReportData& data) {
  Charts charts;
  add_curves(data, charts);
  add_search(data, charts);
  add_schedules(data, charts);
  add_coordinates(data, charts);
  add_goals(data, charts);
  add_answers(data, charts);
  add_times(data, charts);
  return charts;
}

Json complete_spec(const Chart& chart, const Charts& charts) {
  Json spec = chart.spec;
  for (const auto& [name, table] : chart.data)
    named(spec.at("data"), name)["values"] = objects_json(charts.tables.at(table));
  return spec;
}

}  // namespace sweep
