// The charts of a report: specifications for Vega, and their tables.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

struct Chart {
  std::string id;          // "curves-loss": also the name of its file
  std::string kind;        // charts/KIND.json is what it is made of, and KIND the part of the page it is in
  std::string title = {};  // "" if there is no other of its kind
  std::string summary;     // what a screen reader says of it
  /// For Vega, without the values of its data: those are tables with the same names.
  nlohmann::ordered_json spec = {};
  /// The chart as a table, made of the last of its tables: titles, and the names of the columns there.
  /// "share": numbers are shown in percent.
  std::vector<std::array<std::string, 3>> columns = {};
};
void to_json(nlohmann::ordered_json& json, const Chart& chart);

struct Charts {
  std::vector<Chart> charts;  // only those that have something to show
  std::map<std::string, ChartTable> tables;
  std::vector<std::string> remarks = {};  // what the charts leave out
};

Charts charts_of(const ReportData& data);

/// The chart as a specification of its own, with its data.
nlohmann::ordered_json complete_spec(const Chart& chart, const Charts& charts);

/// One line of the learning curves: a run, or the mean of a combination's repeats.
struct CurveSeries {
  std::vector<std::size_t> runs;  // of ReportData::runs, those with epochs
  /// Those whose mean is shown: the completed ones, or all before there is one.
  std::vector<std::size_t> meant;
  std::string label;
};

/// In the order of the runs, without those that have no epochs.
std::vector<CurveSeries> curve_series(const ReportData& data);

/// A setting with a smaller share of all differences is not mentioned.
inline constexpr double kHardlyAnything = 0.005;
/// The effects of one setting, or of two together, the largest first. None without effects.
std::vector<const Effect*> sorted_effects(const ReportData& data, std::size_t keys);

}  // namespace sweep
