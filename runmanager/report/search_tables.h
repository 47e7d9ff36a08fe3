// The trials of a search as tables for charts, and its best settings as a command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runmanager/report/chart_table.h"
#include "runmanager/report/coordinates_table.h"
#include "runmanager/report/report_data.h"

namespace sweep {

struct Trials {
  /// A row per trial that has the metric: trial (from 1), run, label, value, text, best (the best value so
  /// far of completed trials, or null), ended ("completed" or how it ended else), is_best, and a column per
  /// axis.
  ChartTable rows;
  std::vector<ChartAxis> axes;  // of the settings; their values are in the columns "axis0", "axis1", …
  /// Where charts are cut: most values are this side of it, and a few far beyond. None: nowhere.
  std::optional<double> worst_shown = {};
};

/// Trials in the order of their numbers. No rows unless the sweep is a search.
Trials trials_of(const ReportData& data);

struct Schedules {
  /// Where each run begins, where it or a run that it continues got other settings, and its end: run, label,
  /// epoch (0: before the first), is_best, ended, and a column per axis.
  ChartTable rows;
  std::vector<ChartAxis> axes;  // of the settings that change, which are numbers
};

/// The settings of a population over the epochs. No rows if no run continues another.
Schedules schedules_of(const ReportData& data);

/// A row per setting: row, setting, share, text ("62.1%"), best (what the best trials have), may_be_chance.
/// The most important first. No rows without importances.
ChartTable importances_rows(const ReportData& data);

/// What a person types to train the best run of a search again, as a sweep of its own; "" if there is none.
/// A search whose file has "points" has none: they would be outside of the axes.
std::string best_command(const ReportData& data);

}  // namespace sweep
