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

double number_from_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto& text = json.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  throw DataError("\"" + text + "\" is no number");
}

std::optional<double> optional_number(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return std::nullopt;
  return number_from_json(*at);
}

}  // namespace sweep
