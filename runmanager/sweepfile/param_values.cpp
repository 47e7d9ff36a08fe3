#include "runmanager/sweepfile/param_values.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <variant>

#include "runmanager/sweepfile/self_contained.h"

namespace sweep {

void unify_types(const std::vector<std::string>& keys, std::vector<Params>& runs,
                 std::vector<ExcludedRun>& excluded) {
  for (const std::string& key : keys) {
    std::vector<ParamValue*> values;
    const auto collect = [&](Params& params) {
      for (auto& [name, value] : params) {
        if (name == key) values.push_back(&value);
      }
    };
    for (Params& params : runs) collect(params);
    for (ExcludedRun& run : excluded) collect(run.params);
    const auto all_are = [&](auto... indices) {
      return std::all_of(values.begin(), values.end(),
                         [&](const ParamValue* v) { return ((v->index() == indices) || ...); });
    };
    constexpr std::size_t kBool = 0, kInteger = 1, kDouble = 2, kString = 3;
    if (all_are(kBool) || all_are(kInteger) || all_are(kDouble) || all_are(kString)) continue;
    const bool numbers = all_are(kInteger, kDouble);
    for (ParamValue* value : values) {
      if (!numbers) {
        *value = param_text(*value);
      } else if (const auto* integer = std::get_if<std::int64_t>(value)) {
        *value = static_cast<double>(*integer);
      }
    }
  }
}

void shorten_paths(const std::vector<Combination>& combinations, std::vector<Params>& runs,
                   std::vector<ExcludedRun>& excluded) {
  std::map<std::string, std::vector<std::string>> paths;  // by key
  std::set<std::pair<const Axis*, std::size_t>> seen;
  for (const Combination& combination : combinations) {
    for (const AxisValue& value : combination.values) {
      if (!is_file_path(value.axis->path) || !seen.emplace(value.axis, value.index).second) continue;
      paths[value.axis->key].push_back(value.value().text());
    }
  }
  for (const auto& [key, values] : paths) {
    const std::map<std::string, std::string> names = short_paths(values);
    const auto shorten = [&names, &key = key](Params& params) {
      for (auto& [name, value] : params) {
        if (name == key) value = names.at(std::get<std::string>(value));
      }
    };
    for (Params& params : runs) shorten(params);
    for (ExcludedRun& run : excluded) shorten(run.params);
  }
}

}  // namespace sweep
