#include "runmanager/report/charts.h"

#include <fmt/format.h>

#include <utility>

#include "core/json/json_text.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/report/page.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// Marks are short in charts/*.json: "from" names its data, and "update" is short for "encode": {"update": …},
// in which a text is an expression, and a number, a truth value or a list is that value.
void complete_marks(Json& marks) {
  for (Json& mark : marks) {
    if (mark.contains("from") && mark["from"].is_string()) mark["from"] = {{"data", mark["from"]}};
    if (mark.contains("update")) {
      Json& update = mark["encode"]["update"] = std::move(mark["update"]);
      mark.erase("update");
      for (Json& value : update) {
        if (!value.is_object()) value = {{value.is_string() ? "signal" : "value", value}};
      }
    }
    if (mark.contains("marks")) complete_marks(mark["marks"]);
  }
}

// charts/KIND.json, laid on the other that it names: lists of things with names are joined.
Json read_chart(const std::string& kind) {
  const std::string file = kind + ".json";
  Json chart = parse_json_text(embedded_file(file), file);
  if (!chart.contains("on")) return chart;
  Json base = read_chart(chart["on"]);
  chart.erase("on");
  for (const auto& [key, value] : chart.items()) {
    if (value.is_array() && value.at(0).contains("name")) {
      for (const Json& item : value) named(base[key], item.at("name")).update(item, true);
    } else {
      base[key] = value;
    }
  }
  return base;
}

Json spec_of(const std::string& kind, const Json& signals) {
  Json spec = read_chart(kind);
  complete_marks(spec.at("marks"));
  for (const auto& [name, value] : signals.items()) named(spec.at("signals"), name)["value"] = value;
  Json none = Json::array();
  for (Json& axis : spec.contains("axes") ? spec["axes"] : none)
    if (axis.contains("format") && axis["format"].is_object()) set_labels(axis);
  return spec;
}

}  // namespace

void to_json(Json& json, const Chart& chart) {
  json = {{"id", chart.id},           {"kind", chart.kind}, {"title", chart.title},
          {"summary", chart.summary}, {"spec", chart.spec}, {"columns", chart.columns}};
}

Json& named(Json& list, const std::string& name) {
  for (Json& item : list) {
    if (item.contains("name") && item["name"] == name) return item;
  }
  return list.emplace_back(Json{{"name", name}});
}

void set_labels(Json& axis) {
  // Vega takes the number of digits from the distance of ticks: of a single one it shows one digit.
  axis["encode"]["labels"]["update"]["text"] = {
      {"signal", fmt::format("abs(datum.value) >= 1e6 ? format(datum.value, '.2~e') : "
                             "span(domain('{}')) === 0 && indexof(datum.label, '%') < 0 ? "
                             "format(datum.value, ',.6~g') : datum.label",
                             axis.at("scale").get<std::string>())}};
}

Chart& add_chart(Charts& charts, const std::string& kind, std::string summary,
                 std::vector<std::array<std::string, 3>> columns, const Json& signals) {
  return charts.charts.emplace_back(Chart{.id = kind,
                                          .kind = kind,
                                          .summary = std::move(summary),
                                          .spec = spec_of(kind, signals),
                                          .columns = std::move(columns)});
}

std::string axis_title(const Metric& metric) {
  return std::string(metric.name) + (metric.unit == MetricUnit::kSeconds ? ", s" : "");
}

Charts charts_of(const ReportData& data) {
  Charts charts;
  for (const auto& add : {add_curves, add_search, add_schedules, add_coordinates, add_goals, add_effects,
                          add_comparison, add_times})
    add(data, charts);
  return charts;
}

Json complete_spec(const Chart& chart, const Charts& charts) {
  Json spec = chart.spec;
  for (Json& data : spec.at("data")) {
    const auto found = charts.tables.find(data.at("name"));
    if (data.contains("source") || found == charts.tables.end()) continue;
    const ChartTable& table = found->second;
    Json& values = data["values"] = Json::array();
    for (const auto& row : table.rows) {
      Json& object = values.emplace_back(Json::object());
      for (std::size_t i = 0; i < table.columns.size(); ++i) object[table.columns[i]] = row[i];
    }
  }
  return spec;
}

}  // namespace sweep
