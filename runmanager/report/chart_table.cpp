#include "runmanager/report/chart_table.h"

#include <cmath>

namespace sweep {

using Json = nlohmann::ordered_json;

Json table_json(const ChartTable& table) {
  Json json = {{"columns", table.columns}, {"rows", Json::array()}};
  for (const auto& row : table.rows) json["rows"].push_back(row);
  return json;
}

Json objects_json(const ChartTable& table) {
  Json json = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < table.columns.size(); ++i) object[table.columns[i]] = row[i];
    json.push_back(std::move(object));
  }
  return json;
}

Json chart_number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

}  // namespace sweep
