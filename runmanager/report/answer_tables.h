// What settings change, and how devices or sweeps compare, as tables for charts.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "runmanager/report/chart_table.h"
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

}  // namespace sweep
