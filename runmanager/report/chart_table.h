// A table of numbers and texts as charts and scripts take it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sweep {

/// Named columns, and a value per column in each row: a text, a number, a boolean, or null.
struct ChartTable {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::ordered_json>> rows = {};
};

/// {"columns": […], "rows": [[…], …]}: short for large tables.
nlohmann::ordered_json table_json(const ChartTable& table);

/// [{column: value, …}, …], as Vega's data are.
nlohmann::ordered_json objects_json(const ChartTable& table);

/// The number, or null for none and for what no chart can show: NaN and infinities.
nlohmann::ordered_json chart_number(const std::optional<double>& value);

}  // namespace sweep
