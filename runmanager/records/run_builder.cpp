#include "runmanager/records/run_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/base/error.h"
#include "runmanager/config/run_name.h"

namespace sweep {
namespace {

template <typename T>
T get_as(const Run& run, std::string_view key, std::string_view wanted) {
  const ParamValue& value = run.at(key);
  if (const T* same = std::get_if<T>(&value)) return *same;
  throw ConfigError(fmt::format("run {}: \"{}\" is {}, not {}", run.name, key, param_text(value), wanted));
}

}  // namespace

const ParamValue& Run::at(std::string_view key) const {
  std::vector<std::string> keys;
  for (const auto& [name_of_key, value] : params) {
    if (name_of_key == key) return value;
    keys.push_back(name_of_key);
  }
  throw ConfigError(fmt::format("run {} has no \"{}\"; it has: {}", name, key, fmt::join(keys, ", ")));
}

template <>
bool Run::get<bool>(std::string_view key) const {
  return get_as<bool>(*this, key, "true or false");
}

template <>
std::int64_t Run::get<std::int64_t>(std::string_view key) const {
  return get_as<std::int64_t>(*this, key, "an integer");
}

template <>
double Run::get<double>(std::string_view key) const {
  if (const auto* integer = std::get_if<std::int64_t>(&at(key))) return static_cast<double>(*integer);
  return get_as<double>(*this, key, "a number");
}

template <>
std::string Run::get<std::string>(std::string_view key) const {
  return get_as<std::string>(*this, key, "a text");
}

std::vector<Run> RunBuilder::get_runs(const std::vector<Axis>& params) {
  std::vector<Run> runs(1);
  std::set<std::string> keys;
  for (const auto& [key, values] : params) {
    if (values.empty()) throw ConfigError(fmt::format("\"{}\" has no values", key));
    if (!keys.insert(key).second) throw ConfigError(fmt::format("\"{}\" stands twice in the params", key));
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
