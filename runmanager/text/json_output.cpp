#include "runmanager/text/json_output.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace sweep {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string compact_json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json json_number(const std::optional<double>& value) { return value ? json_number(*value) : Json(nullptr); }

std::optional<double> number_in_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

double number_from_json(const Json& json) {
  if (const auto number = number_in_json(json)) return *number;
  throw DataError("\"" + json.get_ref<const std::string&>() + "\" is no number");
}

std::optional<double> optional_number(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return std::nullopt;
  return number_from_json(*at);
}

}  // namespace sweep
