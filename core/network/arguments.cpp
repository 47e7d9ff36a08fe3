#include "core/network/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/suggest.h"

namespace sweep {
namespace {

// A limit from here on only catches typing errors, so messages leave it out.
constexpr double kLargeLimit = 1e9;
// Engines compute with floats.
constexpr double kMaxNumber = std::numeric_limits<float>::max();

// What a message about the wrong `name` ends with.
std::string allowed_names(const std::vector<std::string>& names, std::string_view name) {
  std::string text;
  for (const std::string& allowed : names) text += (text.empty() ? "" : ", ") + allowed;
  return "; allowed: " + (text.empty() ? "none" : text) + did_you_mean(nearest_name(name, names), "; did");
}

bool in_range(const ArgumentType& type, double value) {
  if (!(std::abs(value) <= kMaxNumber)) return false;
  if (type.excludes_minimum() && value == type.minimum) return false;
  if (type.exclusive && value == type.maximum) return false;
  return value >= type.minimum && value <= type.maximum;
}

// " >= 0 and <= 1", or "" without limits.
std::string range_text(const ArgumentType& type) {
  std::string text;
  if (std::isfinite(type.minimum))
    text = (type.excludes_minimum() ? " > " : " >= ") + number_text(type.minimum);
  if (type.maximum < kLargeLimit) {
    text += std::string(text.empty() ? "" : " and") + (type.exclusive ? " < " : " <= ") +
            number_text(type.maximum);
  }
  return text;
}

// What a value of any range is, in the order of ArgumentKind; a choice is one of its type's.
std::string kind_text(ArgumentKind kind) {
  static constexpr const char* kTexts[] = {"true or false",
                                           "an integer",
                                           "an integer, or a pair of integers,",
                                           "a number",
                                           "a pair of numbers",
                                           "a list of numbers",
                                           "a count (an integer >= 0) or a fraction (a number >= 0 and < 1)",
                                           "",
                                           "a path",
                                           "an object"};
  static_assert(std::size(kTexts) == static_cast<std::size_t>(ArgumentKind::kCustom) + 1);
  return kTexts[static_cast<std::size_t>(kind)];
}

template <typename T>
const T* get(const ArgumentValue& value) {
  return std::get_if<T>(&value);
}

using IntegerPair = std::array<std::int64_t, 2>;
using NumberPair = std::array<double, 2>;

std::optional<double> as_number(const ArgumentValue& value) {
  if (const auto* integer = get<std::int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* number = get<double>(value)) return *number;
  return std::nullopt;
}

// The elements of a pair or list; empty for anything else.
std::vector<double> as_numbers(const ArgumentValue& value) {
  return std::visit(
      [](const auto& v) -> std::vector<double> {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_arithmetic_v<V> || std::is_same_v<V, std::string>) {
          return {};
        } else {
          std::vector<double> numbers;
          for (const auto x : v) numbers.push_back(static_cast<double>(x));
          return numbers;
        }
      },
      value);
}

// Converts what people may write (3 for [3, 3], 1 for 1.0) to the form of `kind`; nothing if it does not fit.
std::optional<ArgumentValue> converted(ArgumentKind kind, const ArgumentValue& value) {
  const auto* integer = get<std::int64_t>(value);
  const std::optional<double> number = as_number(value);
  const std::vector<double> numbers = as_numbers(value);
  const auto value_if = [&value](bool fits) { return fits ? std::optional(value) : std::nullopt; };
  switch (kind) {
    case ArgumentKind::kBoolean:
      return value_if(get<bool>(value) != nullptr);
    case ArgumentKind::kInteger:
      return value_if(integer != nullptr);
    case ArgumentKind::kIntegerPair:
      if (integer != nullptr) return IntegerPair{*integer, *integer};
      return value_if(get<IntegerPair>(value) != nullptr);
    case ArgumentKind::kNumber:
      if (number) return *number;
      break;
    case ArgumentKind::kNumberPair:
      if (numbers.size() == 2) return NumberPair{numbers[0], numbers[1]};
      break;
    case ArgumentKind::kNumberList:
      if (!numbers.empty()) return numbers;
      break;
    case ArgumentKind::kCountOrFraction:
      return value_if(number.has_value());
    case ArgumentKind::kChoice:
    case ArgumentKind::kPath:
      return value_if(get<std::string>(value) != nullptr);
    case ArgumentKind::kCustom:
      break;
  }
  return std::nullopt;
}

// `value` has the form of the type's kind.
bool allowed(const ArgumentType& type, const ArgumentValue& value) {
  if (type.kind == ArgumentKind::kCountOrFraction) {
    const double number = *as_number(value);
    return number >= 0 && (get<std::int64_t>(value) != nullptr ? number <= type.maximum : number < 1);
  }
  if (const auto* text = get<std::string>(value)) {
    if (type.kind == ArgumentKind::kPath) return !text->empty() && text->find('\0') == std::string::npos;
    return std::ranges::find(type.choices, *text) != type.choices.end();
  }
  if (get<bool>(value) != nullptr) return true;
  if (const auto number = as_number(value)) return in_range(type, *number);
  return std::ranges::all_of(as_numbers(value), [&](double x) { return in_range(type, x); });
}

}  // namespace

ArgumentType number_argument(std::string name, double value, double minimum, double maximum,
                             std::string help) {
  return {std::move(name), ArgumentKind::kNumber, value, minimum, maximum, false, false, std::move(help)};
}

ArgumentType flag_argument(std::string name, bool value, std::string help) {
  return {std::move(name), ArgumentKind::kBoolean, value, 0, 0, false, false, std::move(help)};
}

std::vector<std::string> type_names(std::span<const NamedType> types) {
  std::vector<std::string> names;
  for (const NamedType& type : types) names.push_back(type.name);
  return names;
}

const NamedType* find_type(std::span<const NamedType> types, std::string_view name) {
  const auto found = std::ranges::find(types, name, &NamedType::name);
  return found == types.end() ? nullptr : &*found;
}

const NamedType& require_type(std::span<const NamedType> types, std::string_view name,
                              std::string_view subject) {
  if (const NamedType* type = find_type(types, name)) return *type;
  throw ConfigError(std::string(subject) + ": unknown type \"" + std::string(name) + "\"" +
                    allowed_names(type_names(types), name));
}

const ArgumentType* find_argument(const NamedType& type, std::string_view name) {
  const auto found = std::ranges::find(type.arguments, name, &ArgumentType::name);
  return found == type.arguments.end() ? nullptr : &*found;
}

std::optional<ArgumentValue> checked_value(const ArgumentType& type, const ArgumentValue& value) {
  std::optional<ArgumentValue> result = converted(type.kind, value);
  if (result && !allowed(type, *result)) result.reset();
  return result;
}

std::string allowed_text(const ArgumentType& type, const ArgumentValue* given) {
  std::string text = type.kind == ArgumentKind::kChoice ? listed(type.choices) : kind_text(type.kind);
  if (type.kind >= ArgumentKind::kInteger && type.kind <= ArgumentKind::kNumberList) text += range_text(type);
  const std::optional<double> number = given != nullptr ? as_number(*given) : std::nullopt;
  const double maximum = std::min(type.maximum, kMaxNumber);
  const bool too_large = number && *number > maximum && maximum >= kLargeLimit;
  return too_large ? text + " and <= " + number_text(maximum) : text;
}

Arguments complete_arguments(const NamedType& type, const Arguments& given, std::string_view subject) {
  const std::string start(subject);
  for (const auto& [name, value] : given) {
    if (find_argument(type, name) != nullptr) continue;
    std::vector<std::string> names;
    for (const ArgumentType& argument : type.arguments) names.push_back(argument.name);
    throw ConfigError(start + ": " + type.name + " has no argument \"" + name + "\"" +
                      allowed_names(names, name));
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
    const std::optional<ArgumentValue> value = checked_value(argument, found->second);
    if (!value) {
      throw ConfigError(start + ": \"" + argument.name + "\": got " + to_string(found->second) + ", want " +
                        allowed_text(argument, &found->second));
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
          std::string text;
          for (const auto x : v) text += (text.empty() ? "" : ", ") + to_string(ArgumentValue(x));
          return "[" + text + "]";
        }
      },
      value);
}

std::string number_text(double value) {
  char buffer[64];
  const auto print = [&](std::chars_format format) {
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, format);
    return std::string(buffer, result.ptr);
  };
  // Python's rule for when to use an exponent; plain to_chars would make 0.0001 "1e-04".
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  return print(plain ? std::chars_format::fixed : std::chars_format::scientific);
}

std::string listed(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace sweep
