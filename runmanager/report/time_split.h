// The parts of each run's time.
#pragma once

#include <string>
#include <vector>

#include "runmanager/report/chart_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

/// Seconds of a run; their sum is that of the whole run.
struct TimeSplit {
  double setup = 0;          // before the first epoch
  double data_wait = 0;      // in which training waited for batches
  double communication = 0;  // in which it waited for other devices
  double compute = 0;        // training itself
  double logging = 0;        // events, records, checkpoints
  double rest = 0;           // validation, test, and what is not measured apart
};

/// None for a run that has not ended, or that has no epochs.
std::optional<TimeSplit> time_split(const RunRecord& run);

/// run, label, total, part, seconds, text, order: a row per run and part, of the `most` runs that took
/// longest; waiting for other devices is a part if any run did. `left_out` gets the number of the others.
ChartTable times_table(const ReportData& data, std::size_t& left_out, std::size_t most = 40);

}  // namespace sweep
