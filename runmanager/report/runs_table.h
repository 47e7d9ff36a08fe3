// The table of all runs.
#pragma once

#include "runmanager/report/chart_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

struct RunsTable {
  ChartTable columns;  // title, kind: "setting", "text" or "number"
  /// A row per run, and a cell per column: a text, or for numbers [number, text]; null if there is none.
  ChartTable cells;
};

/// Settings that differ, status, epochs, losses and other measures, and times, as far as any run has them.
RunsTable runs_table(const ReportData& data);

}  // namespace sweep
