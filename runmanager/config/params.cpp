#include "runmanager/config/params.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "core/network/arguments.h"

namespace sweep {

const ParamValue* find_param(const Params& params, std::string_view key) {
  const auto found = std::ranges::find(params, key, &Params::value_type::first);
  return found == params.end() ? nullptr : &found->second;
}

std::optional<double> param_number(const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  const double* number = std::get_if<double>(&value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string param_text(const ParamValue& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const double* number = std::get_if<double>(&value)) return number_text(*number);
  return std::get<std::string>(value);
}

bool is_json_text(const ParamValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr && (text->starts_with('[') || text->starts_with('{'));
}

std::string param_text(const Params& params, std::string_view key) {
  const ParamValue* value = find_param(params, key);
  return value != nullptr ? param_text(*value) : "";
}

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
