// Schedules as sweep files and the reference data write them.
#pragma once

#include <nlohmann/json.hpp>

#include "core/spec/schedule.h"

namespace sweep::test {

/// {"name", arguments…, "then"}.
inline ScheduleSpec schedule_from_json(const nlohmann::json& json) {
  ScheduleSpec spec;
  for (const auto& [key, value] : json.items()) {
    if (key == "name") {
      spec.type = value;
    } else if (key == "then") {
      spec.then.push_back(schedule_from_json(value));
    } else if (value.is_boolean()) {
      spec.arguments[key] = value.get<bool>();
    } else if (value.is_string()) {
      spec.arguments[key] = value.get<std::string>();
    } else if (value.is_number_integer()) {
      spec.arguments[key] = value.get<std::int64_t>();
    } else {
      spec.arguments[key] = value.get<double>();
    }
  }
  return spec;
}

}  // namespace sweep::test
