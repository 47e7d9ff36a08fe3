// The values of swept keys as parameters of runs.
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "runmanager/config/params.h"
#include "runmanager/config/run_settings.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/run_reader.h"
#include "runmanager/sweepfile/self_contained.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::optional<ParamValue> as_type_of(const Json& value, const ParamValue& example) {
  if (std::holds_alternative<double>(example) && value.is_number()) return value.get<double>();
  if (std::holds_alternative<std::int64_t>(example) && value.is_number_integer())
    return value.get<std::int64_t>();
  if (std::holds_alternative<bool>(example) && value.is_boolean()) return value.get<bool>();
  if (std::holds_alternative<std::string>(example) && value.is_string()) return value.get<std::string>();
  return std::nullopt;
}

}  // namespace

ParamValue param_of(const JsonView& value, const KeyPath& path) {
  if (path == KeyPath{"network"} && value.find("name")->is_string()) return value.find("name").text();
  if (path == KeyPath{"parallel"}) {
    Problems ignored;  // Those of the file are found when the run is read.
    return parallel_text(parallel_of(
        complete_value(*find_setting(top_level_settings(), path[0]), {value, value, {}, {}, ignored})));
  }
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_string()) return value.text();
  if (!value->is_number()) return value->dump();
  // A learning rate of 1 is a number, not an integer: the key's type decides, not how the value is written.
  const std::optional<Setting> setting = setting_at(path);
  const bool is_double = value->is_number_float() || (setting && setting->kind == ArgumentKind::kNumber);
  if (is_double) return value.number();
  return value->get<std::int64_t>();
}

SweptValues::SweptValues(std::vector<const Axis*> axes) : axes_(std::move(axes)) {
  Params all;
  std::map<std::string, std::vector<std::string>> paths;  // by key
  for (const Axis* axis : axes_) {
    for (const JsonView& value : JsonView(axis->values).children()) {
      all.emplace_back(axis->key, param_of(value, axis->path));
      if (is_file_path(axis->path) && value->is_string()) paths[axis->key].push_back(value.text());
    }
  }
  for (const auto& [key, texts] : paths) {
    const std::map<std::string, std::string> names = short_paths(texts);
    for (auto& [name, value] : all) {
      const auto known = name == key ? names.find(param_text(value)) : names.end();
      if (known != names.end()) value = known->second;
    }
  }
  unify_types({&all});
  auto next = all.begin();
  for (const Axis* axis : axes_) {
    std::vector<ParamValue>& values = values_[axis];
    for (std::size_t i = 0; i < axis->values.json.size(); ++i) values.push_back(std::move((next++)->second));
  }
}

Params SweptValues::of(const Combination& combination, bool repeats) const {
  Params params;
  params.reserve(combination.values.size() + (repeats ? 1 : 0));
  for (const AxisValue& value : combination.values) {
    const std::vector<ParamValue>& known = values_.at(value.axis);
    if (value.index < known.size()) {
      params.emplace_back(value.axis->key, known[value.index]);
      continue;
    }
    const ParamValue drawn = param_of(value.value(), value.axis->path);
    params.emplace_back(value.axis->key, as_type_of(*value.value(), known[0]).value_or(param_text(drawn)));
  }
  if (repeats) params.emplace_back(kRepeatKey, static_cast<std::int64_t>(combination.repeat));
  return params;
}

Params SweptValues::in_force(const RunConfig& run) const {
  Params values;
  for (const Axis* axis : axes_) {
    if (find_param(run.params, axis->key) != nullptr || find_param(values, axis->key) != nullptr) continue;
    Json settings = Json::object();
    if (const auto section = run.resolved.find(axis->path[0])) settings[axis->path[0]] = *section;
    const JsonDocument document = document_of(std::move(settings), "settings");
    if (auto value = as_type_of(value_at(document, axis->path), values_.at(axis)[0]))
      values.emplace_back(axis->key, *std::move(value));
  }
  return values;
}

}  // namespace sweep
