#include "runmanager/sweepfile/param_values.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "runmanager/config/param_types.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/self_contained.h"

namespace sweep {

void name_values(const std::vector<Combination>& combinations, std::vector<Params>& runs,
                 std::vector<ExcludedRun>& excluded) {
  std::vector<Params*> all;
  for (Params& params : runs) all.push_back(&params);
  for (ExcludedRun& run : excluded) all.push_back(&run.params);
  std::map<std::string, std::vector<std::string>> paths;  // by key
  std::set<std::pair<const Axis*, std::size_t>> seen;
  for (const Combination& combination : combinations) {
    for (const AxisValue& value : combination.values) {
      if (is_file_path(value.axis->path) && seen.emplace(value.axis, value.index).second)
        paths[value.axis->key].push_back(value.value().text());
    }
  }
  for (const auto& [key, values] : paths) {
    const std::map<std::string, std::string> names = short_paths(values);
    for (Params* params : all) {
      for (auto& [name, value] : *params) {
        if (name == key) value = names.at(std::get<std::string>(value));
      }
    }
  }
  unify_types(all);
}

namespace {

std::optional<ParamValue> as_type_of(const nlohmann::ordered_json& value, const ParamValue& example) {
  if (std::holds_alternative<double>(example) && value.is_number()) return value.get<double>();
  if (std::holds_alternative<std::int64_t>(example) && value.is_number_integer())
    return value.get<std::int64_t>();
  if (std::holds_alternative<bool>(example) && value.is_boolean()) return value.get<bool>();
  if (std::holds_alternative<std::string>(example) && value.is_string()) return value.get<std::string>();
  return std::nullopt;
}

}  // namespace

Params values_in_force(const std::vector<Grid>& grids, const RunConfig& run,
                       const std::map<std::string, ParamValue>& examples) {
  Params values;
  for (const Grid& grid : grids) {
    for (const Axis& axis : grid.axes) {
      const auto example = examples.find(axis.key);
      if (find_param(run.params, axis.key) != nullptr || find_param(values, axis.key) != nullptr ||
          example == examples.end())
        continue;
      nlohmann::ordered_json settings = nlohmann::ordered_json::object();
      if (const auto section = run.resolved.find(axis.path[0])) settings[axis.path[0]] = *section;
      const JsonDocument document = document_of(std::move(settings), "settings");
      if (auto value = as_type_of(value_at(document, axis.path), example->second))
        values.emplace_back(axis.key, *std::move(value));
    }
  }
  return values;
}

void add_examples(const Params& params, std::map<std::string, ParamValue>& examples) {
  for (const auto& [key, value] : params) examples.try_emplace(key, value);
}

}  // namespace sweep
