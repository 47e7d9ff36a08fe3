// What settings change, how devices or sweeps compare, and the parts of the time, as tables for charts.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

/// A setting with a smaller share of all differences is not mentioned.
inline constexpr double kHardlyAnything = 0.005;

/// The effects of one setting, or of two together, the largest first. None without effects.
std::vector<const Effect*> sorted_effects(const ReportData& data, std::size_t keys);

/// A row per value of each setting, after a row that names the setting (level false): row, level, setting,
/// value, share, mean, low, high, text, best, middle. The interval is 95 %; the middle is the mean of all
/// runs. The settings that change most come first. No rows without effects.
ChartTable levels_table(const ReportData& data);

/// What two settings do together beyond their own effects: settings, share, and p if known. The
/// largest first.
ChartTable interactions_table(const ReportData& data);

/// A row per pair and side of the comparison: row, place (0 or 1), label, side, seconds, text, ratio ("cuda:0
/// is 14.2 times as fast"). Up to `max_pairs` pairs.
ChartTable comparison_table(const ReportData& data, std::size_t most = 24);

/// A row per completed run that has all of several goals: run, label, x (the second goal), y (the first one),
/// their texts, and whether it is one of front_runs(). No rows for a single goal.
ChartTable goals_table(const ReportData& data);

/// The combinations that no other one beats in both time and metric, best metric last: settings, metric,
/// time.
ChartTable front_table(const ReportData& data);

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
