// The charts of a report: specifications for Vega, and their tables.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep {

struct Chart {
  std::string id;    // "curves-loss": also the name of its file
  std::string kind;  // charts/KIND.vg.json is what it is made of, and KIND the part of the page it is in
  std::string title = {};                                      // "" if there is no other of its kind
  std::string summary;                                         // what a screen reader says of it
  nlohmann::ordered_json spec = {};                            // for Vega, without the data
  std::vector<std::pair<std::string, std::string>> data = {};  // names in the specification and in `tables`
};

struct Charts {
  std::vector<Chart> charts;  // only those that have something to show
  std::map<std::string, ChartTable> tables;
  std::vector<std::string> remarks = {};  // what the charts leave out
};

Charts charts_of(const ReportData& data);

/// The chart as a specification of its own, with its data.
nlohmann::ordered_json complete_spec(const Chart& chart, const Charts& charts);

}  // namespace sweep
