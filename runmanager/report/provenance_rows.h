// The origin of a report's results.
#pragma once

#include "runmanager/report/chart_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

/// what, value: program, machine, devices, command line, data with their digests, and when; of each sweep by
/// its first run that tells, and what differs in other runs. The machine's host is left out: a report is sent
/// to others.
ChartTable provenance_rows(const ReportData& data);

/// sweep, text: the sweep files as expanded, indented. Without the list of runs and the provenance, which
/// are elsewhere in the report.
ChartTable sweep_files(const ReportData& data);

}  // namespace sweep
