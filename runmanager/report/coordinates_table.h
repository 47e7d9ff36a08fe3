// Runs as lines across parallel axes: one axis per setting, one for the time, one for the metric.
#pragma once

#include <nlohmann/json.hpp>

#include "runmanager/report/chart_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

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
