#include "runmanager/import/foreign_params.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "core/base/text.h"
#include "runmanager/config/param_types.h"

namespace sweep {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_in_key(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// The end of "key=" at `begin`, or none.
std::optional<std::size_t> key_end(std::string_view text, std::size_t begin) {
  if (begin >= text.size() || !is_letter(text[begin])) return std::nullopt;
  std::size_t end = begin;
  while (end < text.size() && is_in_key(text[end])) ++end;
  return end < text.size() && text[end] == '=' ? std::optional(end) : std::nullopt;
}

bool always_separates(char c) { return std::string_view(" ,;)/").find(c) != std::string_view::npos; }
// A minus and an underscore may belong to a value, unless a key follows.
bool may_separate(char c) { return c == '-' || c == '_' || c == '.'; }

}  // namespace

Params params_of_name(std::string_view name) {
  Params params;
  for (std::size_t i = 0; i < name.size();) {
    const std::optional<std::size_t> equals = key_end(name, i);
    if (!equals) {
      // The next word, so that no key begins in the middle of one.
      while (i < name.size() && is_in_key(name[i])) ++i;
      while (i < name.size() && !is_letter(name[i])) ++i;
      continue;
    }
    std::size_t end = *equals + 1;
    while (end < name.size() && !always_separates(name[end]) &&
           !(may_separate(name[end]) && key_end(name, end + 1)))
      ++end;
    const std::string key(name.substr(i, *equals - i));
    std::erase_if(params, [&key](const auto& param) { return param.first == key; });
    params.emplace_back(key, param_of_text(name.substr(*equals + 1, end - *equals - 1)));
    i = end + 1;
  }
  return params;
}

ParamValue param_of_text(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (const auto integer = number_in<std::int64_t>(text)) return *integer;
  // "nan" and "inf" may be names.
  if (const auto number = number_in<double>(text); number && std::isfinite(*number)) return *number;
  return std::string(text);
}

void unify_foreign_types(const std::vector<Params*>& runs) {
  constexpr double kLimit = 1e15;
  for (Params* params : runs) {
    for (auto& [key, value] : *params) {
      const auto* const number = std::get_if<double>(&value);
      if (number != nullptr && std::trunc(*number) == *number && std::abs(*number) < kLimit)
        value = static_cast<std::int64_t>(*number);
    }
  }
  unify_types(runs);
}

}  // namespace sweep
