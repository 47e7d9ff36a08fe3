// The charts of made runs, for tests to look at.
#pragma once

#include "runmanager/report/charts.h"
#include "tests/runmanager/answers/made_runs.h"

namespace sweep::testing {

using Cells = std::vector<nlohmann::ordered_json>;
using Runs = std::vector<SourceRun>;
using Losses = std::vector<double>;

// The charts of runs, and what is in them.
struct Shown {
  ReportData data;
  Charts charts;

  explicit Shown(Runs runs, const Goals& goals = {}, bool is_search = false)
      : Shown(report_data_of(std::move(runs), goals, is_search)) {}
  explicit Shown(ReportData of) : data(std::move(of)), charts(charts_of(data)) {}

  std::vector<std::string> ids() const {
    std::vector<std::string> names;
    for (const Chart& chart : charts.charts) names.push_back(chart.id);
    return names;
  }
  const Chart& chart(const std::string& id) const {
    const auto found = std::ranges::find(charts.charts, id, &Chart::id);
    if (found == charts.charts.end()) throw std::runtime_error("there is no " + id);
    return *found;
  }
  // The value of a signal of a chart, null if there is none.
  nlohmann::ordered_json signal(const std::string& id, const std::string& name) const {
    for (const nlohmann::ordered_json& signal : chart(id).spec.at("signals"))
      if (signal.at("name") == name) return signal.value("value", nlohmann::ordered_json());
    return nullptr;
  }
  // The scale of an axis of the coordinates.
  nlohmann::ordered_json scale(std::size_t axis) const {
    return chart("coordinates").spec.at("scales").at(2 + axis);
  }
  // A table; empty if there is none.
  ChartTable table(const std::string& name) const {
    const auto found = charts.tables.find(name);
    return found == charts.tables.end() ? ChartTable() : found->second;
  }
  // The cells of a column, one per row.
  Cells column(const std::string& name, const std::string& title) const {
    Cells cells;
    const ChartTable found = table(name);
    const auto at = std::ranges::find(found.columns, title) - found.columns.begin();
    for (const auto& row : found.rows) cells.push_back(row.at(static_cast<std::size_t>(at)));
    return cells;
  }
  // Rows of the loss in the training part.
  std::vector<Cells> losses() const {
    std::vector<Cells> rows = table("points").rows;
    std::erase_if(rows, [](const Cells& row) { return row[1] != "training" || row[2] != "loss"; });
    return rows;
  }
};

inline SourceRun run_of(double lr, const Losses& losses, const std::string& device = "cpu") {
  SourceRun run = made_run({{"lr", lr}}, device, 1, losses);
  run.record.run_seconds = 5;
  return run;
}

}  // namespace sweep::testing

namespace sweep {
using testing::Cells, testing::Losses, testing::run_of, testing::Runs, testing::Shown;
}  // namespace sweep
