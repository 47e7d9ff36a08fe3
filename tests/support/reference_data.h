// Values that PyTorch computed; see tests/data/make_references.py. Layers, losses, optimizers and schedules
// are written there as in sweep files.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/safetensors.h"
#include "core/network/network.h"
#include "core/network/schedule.h"
#include "tests/support/test.h"

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

/// tests/data/<name>.
std::filesystem::path reference_path(const std::string& name);
nlohmann::json reference_json(const std::string& name);
/// A table or the figures of PyTorch and scikit-learn about tables: "iris.csv".
inline std::filesystem::path table_path(const std::string& name) { return reference_path("tables/" + name); }

/// Layers as make_references.py writes them: [{"name", "type", "arguments": {…}}], sequential and residual
/// with "layers" and "shortcut".
NetworkSpec network_from_json(const std::string& name, const nlohmann::json& layers);

/// The parameters of `network`, from the tensors named `prefix` + the parameter's name. Throws if one is
/// missing or has another shape.
std::vector<float> parameters_from(const TensorFile& file, const Network& network, const std::string& prefix);

/// The same for the running statistics of `network`.
std::vector<float> buffers_from(const TensorFile& file, const Network& network, const std::string& prefix);

}  // namespace sweep::test
