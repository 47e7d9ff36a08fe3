#include "runmanager/sweepfile/param_values.h"

#include <map>
#include <set>
#include <utility>
#include <variant>

#include "runmanager/config/param_types.h"
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

}  // namespace sweep
