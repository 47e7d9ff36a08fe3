// Learning curves as tables for charts.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

/// One line of the charts: a run, or the mean of a combination's repeats.
struct CurveSeries {
  std::vector<std::size_t> runs;  // of ReportData::runs, those with epochs
  std::vector<std::size_t>
      meant;  // those whose mean is shown: the completed ones, or all before there is one
  std::string label;
};

/// In the order of the runs, without those that have no epochs.
std::vector<CurveSeries> curve_series(const ReportData& data);

/// One quantity of an epoch that gets a chart of its own.
struct CurveMeasure {
  std::string name;   // "loss", "accuracy", "rmse", or a person's own metric
  std::string title;  // "Loss"
  bool is_share = false;
};

inline constexpr std::size_t kMaxCurveMeasures = 12;
/// The measures that any run has: the loss, the accuracy or RMSE, and the first of people's own metrics.
std::vector<CurveMeasure> curve_measures(const ReportData& data);

struct Curves {
  /// series, part ("training", "validation", or "reported" of people's own metrics), measure, epoch, value,
  /// low, high: the last two are the mean less and plus the standard deviation over repeats, of two or more.
  /// A mean is of the epochs that all its runs have. For a program's reports "epoch" is the step.
  ChartTable points;
  bool are_steps = false;  // some of them
  std::size_t epochs = 0;  // most of any series
  std::size_t shown = 0;   // of these, most in `points`: long curves are thinned
};

/// `most_points`: in all; a curve keeps its first and last epoch and at least 30 in all.
Curves curves_table(const ReportData& data, const std::vector<CurveSeries>& series,
                    std::size_t most_points = 60'000);

/// series, label, repeats (of the mean), group, settings: what hovering and colours need. The group is the
/// value of `colour_key`, or the label if that is empty.
ChartTable series_table(const ReportData& data, const std::vector<CurveSeries>& series,
                        const std::string& colour_key);

}  // namespace sweep
