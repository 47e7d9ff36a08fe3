// Runs as lines across parallel axes: one axis per setting, one for the metric, one for the time.
#pragma once

#include "runmanager/report/chart_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

struct Coordinates {
  ChartTable axes;    // axis, title: settings first
  ChartTable ticks;   // axis, y in [0, 1], text
  ChartTable points;  // run, axis, y in [0, 1], text
  ChartTable lines;   // run, label, value (of the metric), settings
};

/// Of the completed runs that have the metric. A setting with numbers has them in their order, evenly spaced
/// if there are few, else by value or, over two powers of ten or more, by its logarithm; other settings have
/// their values in the order of the runs. The best value of metric and time is at the top.
Coordinates coordinates_of(const ReportData& data);

}  // namespace sweep
