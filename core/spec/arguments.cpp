#include "core/spec/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/suggest.h"

namespace sweep {
namespace {

std::string number_text(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

std::vector<std::string> names_of(const std::vector<ArgumentType>& arguments) {
  std::vector<std::string> names;
  for (const ArgumentType& argument : arguments) names.push_back(argument.name);
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// Converts what a person may write (3 for [3, 3], 1 for 1.0) to the kind of `type`; nothing if it does not
// fit.
std::optional<ArgumentValue> converted(const ArgumentType& type, const ArgumentValue& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  switch (type.kind) {
    case ArgumentKind::kBoolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case ArgumentKind::kInteger:
      if (integer != nullptr) return value;
      break;
    case ArgumentKind::kIntegerPair:
      if (integer != nullptr) return std::array<std::int64_t, 2>{*integer, *integer};
      if (std::holds_alternative<std::array<std::int64_t, 2>>(value)) return value;
      break;
    case ArgumentKind::kNumber:
      if (integer != nullptr) return static_cast<double>(*integer);
      if (std::holds_alternative<double>(value)) return value;
      break;
    case ArgumentKind::kNumberPair:
      if (const auto* pair = std::get_if<std::array<std::int64_t, 2>>(&value)) {
        return std::array<double, 2>{static_cast<double>((*pair)[0]), static_cast<double>((*pair)[1])};
      }
      if (std::holds_alternative<std::array<double, 2>>(value)) return value;
      break;
    case ArgumentKind::kChoice:
      if (std::holds_alternative<std::string>(value)) return value;
      break;
  }
  return std::nullopt;
}

bool in_range(const ArgumentType& type, const ArgumentValue& value) {
  const auto fits = [&](double x) {
    return type.exclusive ? x > type.minimum && x < type.maximum : x >= type.minimum && x <= type.maximum;
  };
  return std::visit(
      [&](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, bool>) {
          return true;
        } else if constexpr (std::is_same_v<V, std::string>) {
          return std::find(type.choices.begin(), type.choices.end(), v) != type.choices.end();
        } else if constexpr (std::is_arithmetic_v<V>) {
          return fits(static_cast<double>(v));
        } else {
          return std::all_of(v.begin(), v.end(), [&](auto x) { return fits(static_cast<double>(x)); });
        }
      },
      value);
}

}  // namespace

const NamedType* find_type(std::span<const NamedType> types, std::string_view name) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const NamedType& t) { return t.name == name; });
  return found == types.end() ? nullptr : &*found;
}

const NamedType& require_type(std::span<const NamedType> types, std::string_view name,
                              std::string_view what) {
  if (const NamedType* type = find_type(types, name)) return *type;
  std::vector<std::string> names;
  for (const NamedType& type : types) names.push_back(type.name);
  const std::string nearest = nearest_name(name, names);
  throw ConfigError(std::string(what) + ": unknown type \"" + std::string(name) + "\"; allowed: " +
                    joined(names) + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"));
}

std::string allowed_text(const ArgumentType& type) {
  std::string text;
  switch (type.kind) {
    case ArgumentKind::kBoolean:
      return "true or false";
    case ArgumentKind::kInteger:
      text = "an integer";
      break;
    case ArgumentKind::kIntegerPair:
      text = "an integer or a pair [height, width] of integers";
      break;
    case ArgumentKind::kNumber:
      text = "a number";
      break;
    case ArgumentKind::kNumberPair:
      text = "a pair of numbers";
      break;
    case ArgumentKind::kChoice:
      return "one of " + joined(type.choices);
  }
  const bool bounded_above = type.maximum < kUnbounded;
  const bool bounded_below = type.minimum > -kUnbounded;
  if (bounded_below) text += (type.exclusive ? " > " : " >= ") + number_text(type.minimum);
  if (bounded_above)
    text += std::string(bounded_below ? " and" : "") + (type.exclusive ? " < " : " <= ") +
            number_text(type.maximum);
  return text;
}

Arguments complete_arguments(const NamedType& type, const Arguments& given, std::string_view what) {
  const std::string start(what);
  for (const auto& [name, value] : given) {
    const auto known = std::find_if(type.arguments.begin(), type.arguments.end(),
                                    [&key = name](const ArgumentType& a) { return a.name == key; });
    if (known != type.arguments.end()) continue;
    const std::vector<std::string> names = names_of(type.arguments);
    const std::string nearest = nearest_name(name, names);
    throw ConfigError(start + ": " + type.name + " has no argument \"" + name + "\"; allowed: " +
                      joined(names) + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"));
  }
  Arguments complete;
  for (const ArgumentType& argument : type.arguments) {
    const auto found = given.find(argument.name);
    if (found == given.end()) {
      if (argument.default_value) {
        complete[argument.name] = *argument.default_value;
      } else if (!argument.optional) {
        throw ConfigError(start + ": " + type.name + " needs \"" + argument.name + "\", " +
                          allowed_text(argument));
      }
      continue;
    }
    const std::optional<ArgumentValue> value = converted(argument, found->second);
    if (!value || !in_range(argument, *value)) {
      throw ConfigError(start + ": \"" + argument.name + "\": got " + to_string(found->second) + ", want " +
                        allowed_text(argument));
    }
    complete[argument.name] = *value;
  }
  return complete;
}

std::string to_string(const ArgumentValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<V, std::int64_t>) {
          return std::to_string(v);
        } else if constexpr (std::is_same_v<V, double>) {
          return number_text(v);
        } else if constexpr (std::is_same_v<V, std::string>) {
          return "\"" + v + "\"";
        } else {
          return "[" + to_string(ArgumentValue(v[0])) + ", " + to_string(ArgumentValue(v[1])) + "]";
        }
      },
      value);
}

}  // namespace sweep
