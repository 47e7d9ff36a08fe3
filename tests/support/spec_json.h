// Layers, losses, optimizers and schedules as sweep files and the reference data write them.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/network/arguments.h"
#include "core/network/schedule.h"

namespace sweep::test {

inline ArgumentValue argument_from(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  const bool is_pair = value.size() == 2 && value[0].is_number_integer() && value[1].is_number_integer();
  if (is_pair) return value.get<std::array<std::int64_t, 2>>();
  return value.get<std::vector<double>>();
}

/// All of an object but what is called "name" or "then".
inline Arguments arguments_from(const nlohmann::json& object) {
  Arguments arguments;
  for (const auto& [key, value] : object.items())
    if (key != "name" && key != "then") arguments[key] = argument_from(value);
  return arguments;
}

/// {"name", arguments…, "then"}.
inline ScheduleOptions schedule_from(const nlohmann::json& json) {
  const std::string type = json.at("name");
  if (!json.contains("then")) return make_schedule(type, arguments_from(json));
  const ScheduleOptions then = schedule_from(json.at("then"));
  return make_schedule(type, arguments_from(json), &then);
}

}  // namespace sweep::test
