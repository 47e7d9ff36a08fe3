// Settings as axes of charts: runs across parallel axes, and the trials of a search, whose best settings are
// also a command.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

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
