// The parts of a report's charts: each adds those that it has something to show in, and their tables.
#pragma once

#include <string>

#include "runmanager/report/charts.h"

namespace sweep {

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
/// Long curves are thinned, but keep their first and last epoch. Of repeats they are means with standard
/// deviations, of the epochs that all of them have. A program's reports are by their step.
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

/// Where the time of the longest runs went. The parts add up to the whole run; waiting for other devices is
/// one if any run did.
void add_times(const ReportData& data, Charts& charts);

}  // namespace sweep
