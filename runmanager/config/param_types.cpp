#include "runmanager/config/param_types.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <variant>

namespace sweep {

void unify_types(const std::vector<Params*>& runs) {
  const std::set<std::size_t> numbers = {ParamValue(std::int64_t{}).index(), ParamValue(0.0).index()};
  std::map<std::string_view, std::set<std::size_t>> types;  // that the values of a key have
  for (const Params* params : runs) {
    for (const auto& [key, value] : *params) types[key].insert(value.index());
  }
  for (Params* params : runs) {
    for (auto& [key, value] : *params) {
      const std::set<std::size_t>& known = types.at(key);
      if (known.size() == 1) continue;
      const auto* const integer = std::get_if<std::int64_t>(&value);
      if (known != numbers)
        value = param_text(value);
      else if (integer != nullptr)
        value = static_cast<double>(*integer);
    }
  }
}

}  // namespace sweep
