// The charts of a report: specifications for Vega, and their tables; and the parts that they are made of.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

struct Chart {
  std::string id;          // "curves-loss": also the name of its file
  std::string kind;        // charts/KIND.json is what it is made of, and KIND the part of the page it is in
  std::string title = {};  // "" if there is no other of its kind
  std::string summary;     // what a screen reader says of it
  /// For Vega, without the values of its data: those are tables with the same names.
  nlohmann::ordered_json spec = {};
  /// The chart as a table, made of the last of its tables: titles, and the names of the columns there.
  /// "share": numbers are shown in percent.
  std::vector<std::array<std::string, 3>> columns = {};
};
void to_json(nlohmann::ordered_json& json, const Chart& chart);

struct Charts {
  std::vector<Chart> charts;  // only those that have something to show
  std::map<std::string, ChartTable> tables;
  std::vector<std::string> remarks = {};  // what the charts leave out
};

Charts charts_of(const ReportData& data);

/// The chart as a specification of its own, with its data.
nlohmann::ordered_json complete_spec(const Chart& chart, const Charts& charts);

/// One line of the learning curves: a run, or the mean of a combination's repeats.
struct CurveSeries {
  std::vector<std::size_t> runs;  // of ReportData::runs, those with epochs
  /// Those whose mean is shown: the completed ones, or all before there is one.
  std::vector<std::size_t> meant;
  std::string label;
};

/// In the order of the runs, without those that have no epochs.
std::vector<CurveSeries> curve_series(const ReportData& data);

/// A setting with a smaller share of all differences is not mentioned.
inline constexpr double kHardlyAnything = 0.005;
/// The effects of one setting, or of two together, the largest first. None without effects.
std::vector<const Effect*> sorted_effects(const ReportData& data, std::size_t keys);

// The parts: each adds the charts that it has something to show in, and their tables.

/// Adds the chart that charts/KIND.json describes, with these values for its signals. For the others see
/// Chart. Its tables are still to be added.
Chart& add_chart(Charts& charts, const std::string& kind, std::string summary,
                 std::vector<std::array<std::string, 3>> columns,
                 const nlohmann::ordered_json& signals = nlohmann::ordered_json::object());

/// The one with this name in a list of signals, scales, or other things with names; added if it is missing.
nlohmann::ordered_json& named(nlohmann::ordered_json& list, const std::string& name);

/// Writes the numbers along an axis with the digits that tell them apart: those of a diverging run would be
/// cut off.
void set_labels(nlohmann::ordered_json& axis);

/// How Vega writes the metric's values along an axis.
inline std::string axis_format(bool is_share) { return is_share ? ".1~%" : ",~r"; }
inline std::string axis_format(const Metric& metric) {
  return axis_format(metric.unit == MetricUnit::kShare);
}
/// "time per epoch, s".
std::string axis_title(const Metric& metric);

/// Learning curves: a chart for the loss, the accuracy or RMSE, and for the first of people's own metrics.
/// Long curves are thinned, but keep their first and last epoch. Repeats are drawn as means with standard
/// deviations, over the epochs that all of them have. A program's reports are by their step.
void add_curves(const ReportData& data, Charts& charts);

/// A search's charts: how good its trials were, the best so far, what mattered, the results by each setting.
void add_search(const ReportData& data, Charts& charts);

/// How the settings of a population change over the epochs. None if no run continues another.
void add_schedules(const ReportData& data, Charts& charts);

/// A line for each completed run that has the metric, across its settings, its time and the metric. The best
/// value of time and metric is at the top.
void add_coordinates(const ReportData& data, Charts& charts);

/// The first two of several goals, one against the other.
void add_goals(const ReportData& data, Charts& charts);

/// The mean of the metric for each value of each setting, with 95 % intervals: the settings that change most
/// come first. The tables "interactions" and "front" are not drawn: what two settings do together beyond
/// their own effects, and the combinations that no other one beats in both time and metric.
void add_effects(const ReportData& data, Charts& charts);

/// Both sides of the first pairs of Comparison.
void add_comparison(const ReportData& data, Charts& charts);

/// Where the time of the longest runs that tell the times of their epochs went. The parts, those that any run
/// has, add up to the whole run.
void add_times(const ReportData& data, Charts& charts);

}  // namespace sweep
