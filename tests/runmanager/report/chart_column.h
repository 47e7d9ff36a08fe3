// Reads the tables of charts in tests.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/report/report_data.h"

namespace sweep::test {

/// The cells of a column, one per row.
inline std::vector<nlohmann::ordered_json> column(const ChartTable& table, const std::string& name) {
  const auto at = std::ranges::find(table.columns, name) - table.columns.begin();
  std::vector<nlohmann::ordered_json> cells;
  for (const auto& row : table.rows) cells.push_back(row.at(static_cast<std::size_t>(at)));
  return cells;
}

}  // namespace sweep::test
