// Runs as lines across parallel axes: one axis per setting, one for the time, one for the metric.
#pragma once

#include <nlohmann/json.hpp>

#include "runmanager/report/chart_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

/// The values of an axis, one per run, and how Vega shows them.
struct ChartAxis {
  std::string title, scale;  // of Vega: "point", "linear" or "log"
  std::vector<nlohmann::ordered_json> values;
  std::string format = ",~r";  // "" for texts
  bool is_down = false;        // the smallest value is at the top
};

/// A setting of `runs`. Numbers that a search draws, and many others, are shown by value or by their
/// logarithm: as the search draws them, else by logarithm over two powers of ten or more; few others, and
/// texts, each have their place. The value of a run without the setting is "", among numbers null.
ChartAxis setting_axis(const ReportData& data, const std::string& key, const std::vector<std::size_t>& runs);

struct Coordinates {
  ChartTable axes;  // axis (a column of `runs`, and the name of its scale), title, test
  ChartTable runs;  // run, label, result, value (of the metric), and a column per axis
  std::vector<nlohmann::ordered_json> scales;  // of Vega, in the order of the axes
  std::vector<std::string> formats;            // of the axes' labels; "" for texts
};

/// The axes and lines of the completed runs that have the metric. A setting with many numbers is shown by
/// value or, over two powers of ten or more, by its logarithm; of few, each has its place, in their order;
/// texts have it in the order of the runs. The best value of metric and time is at the top. `test` says how
/// Vega's vlSelectionTest tells whether a run is in a part of the axis: R, a range, or E, a list of values.
Coordinates coordinates_of(const ReportData& data);

}  // namespace sweep
