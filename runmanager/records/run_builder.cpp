#include "runmanager/records/run_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/base/error.h"
#include "runmanager/config/params.h"

namespace sweep {
const ParamValue& Run::at(std::string_view key) const {
  std::vector<std::string> keys;
  for (const auto& [name_of_key, value] : params) {
    if (name_of_key == key) return value;
    keys.push_back(name_of_key);
  }
  throw ConfigError(fmt::format("run {} has no \"{}\"; it has: {}", name, key, fmt::join(keys, ", ")));
}

void Run::refuse_type(std::string_view key, const ParamValue& wanted) const {
  constexpr std::string_view kTypes[] = {"true or false", "an integer", "a number", "a text"};
  throw ConfigError(
      fmt::format("run {}: \"{}\" is {}, not {}", name, key, param_text(at(key)), kTypes[wanted.index()]));
}

std::vector<Run> RunBuilder::get_runs(const std::vector<Axis>& params) {
  std::vector<Run> runs(1);
  std::set<std::string> keys;
  for (const auto& [key, values] : params) {
    if (values.empty()) throw ConfigError(fmt::format("\"{}\" has no values", key));
    if (!keys.insert(key).second) throw ConfigError(fmt::format("\"{}\" is given twice in the params", key));
    std::vector<Run> longer;
    longer.reserve(runs.size() * values.size());
    for (const Run& run : runs) {
      for (const ParamValue& value : values) {
        longer.push_back(run);
        longer.back().params.emplace_back(key, value);
      }
    }
    runs = std::move(longer);
  }
  std::vector<Params> all;
  for (const Run& run : runs) all.push_back(run.params);
  const std::vector<std::string> names = run_names(all);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Run& run = runs[i];
    run.name = names[i];
    for (const auto& [key, value] : run.params) {
      if (key == "device" && std::holds_alternative<std::string>(value))
        run.device = std::get<std::string>(value);
    }
  }
  return runs;
}

}  // namespace sweep
