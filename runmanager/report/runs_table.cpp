#include "runmanager/report/runs_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "runmanager/config/params.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> shown_metrics(const ReportData& data) {
  std::vector<const RunRecord*> runs;
  for (const RunRecord& run : data.records) runs.push_back(&run);
  std::vector<std::string> names = metric_names(runs);
  // Times are first there; here they follow the metrics of quality.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return !is_time(name) && name != "images_per_second";
  });
  return names;
}

Json setting_cell(const SourceRun& run, const std::string& key) {
  const std::string text = setting_text(run, key);
  return text.empty() ? Json() : Json(text);
}

Json number_cell(const std::optional<double>& value, const std::string& metric) {
  if (!value) return nullptr;
  return Json::array({chart_number(value), metric_text(value, metric)});
}

}  // namespace

RunsTable runs_table(const ReportData& data) {
  RunsTable table{.columns = {{"title", "kind"}}, .cells = {}};
  std::vector<std::function<Json(std::size_t)>> cells;
  const auto add = [&](const std::string& title, const char* kind, std::function<Json(std::size_t)> cell) {
    table.columns.rows.push_back({title, kind});
    cells.push_back(std::move(cell));
  };
  std::vector<std::string> keys = data.keys;
  if (has_repeats(data)) keys.emplace_back(kRepeatKey);
  for (const std::string& key : keys)
    add(key, "setting", [&data, key](std::size_t run) { return setting_cell(data.runs[run], key); });
  if (keys.empty()) add("run", "setting", [&](std::size_t run) { return Json(data.records[run].name); });
  add("status", "text", [&](std::size_t run) { return Json(to_string(data.records[run].status)); });
  const auto parent = [&data](std::size_t run) {
    const Lineage lineage = lineage_of(data.records[run].config);
    return lineage.empty() ? Json()
                           : Json(fmt::format("{} after {}", lineage.back().run, lineage.back().until));
  };
  if (std::ranges::any_of(data.records, [](const RunRecord& run) { return !lineage_of(run.config).empty(); }))
    add("continues", "text", parent);
  add("epochs", "number", [&](std::size_t run) {
    const std::size_t epochs = data.records[run].epochs.size();
    return epochs == 0 ? Json() : Json::array({epochs, std::to_string(epochs)});
  });
  for (const std::string& metric : shown_metrics(data))
    add(metric_title(metric), "number", [&data, metric](std::size_t run) {
      return number_cell(run_metric(data.records[run], metric), metric);
    });
  for (std::size_t run = 0; run < data.runs.size(); ++run) {
    std::vector<Json>& row = table.cells.rows.emplace_back();
    for (const auto& cell : cells) row.push_back(cell(run));
  }
  return table;
}

}  // namespace sweep
