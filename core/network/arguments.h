// One description for every named value: the arguments of layers, optimizers, schedules and losses, and the
// simple keys of a sweep file. Checks, messages, defaults, the schema and TensorBoard's graph all read it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sweep {

enum class ArgumentKind {
  kBoolean,
  kInteger,          // std::int64_t
  kIntegerPair,      // an integer for both, or [height, width]
  kNumber,           // double
  kNumberPair,       // [first, second]
  kNumberList,       // std::vector<double>, not empty
  kCountOrFraction,  // std::int64_t >= 0, or double in [0, 1)
  kChoice,           // std::string, one of `choices`
  kPath,             // std::string, the name of a file or directory: not empty, without NUL
  kCustom,           // an object or list that code of its own checks; never an ArgumentValue
};

using ArgumentValue = std::variant<bool, std::int64_t, double, std::array<std::int64_t, 2>,
                                   std::array<double, 2>, std::vector<double>, std::string>;

using Arguments = std::map<std::string, ArgumentValue, std::less<>>;

/// Stands for "no upper limit" in ArgumentType::maximum.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// One argument or key. Numbers must be finite and lie in [minimum, maximum] (each element of a pair or
/// list); with `exclusive` set, strictly between them. The limits mean nothing for other kinds.
struct ArgumentType {
  std::string name;
  ArgumentKind kind = ArgumentKind::kCustom;
  std::optional<ArgumentValue> default_value{};  // none: an argument is required, unless `optional`
  double minimum = 0;
  double maximum = kUnbounded;
  bool optional = false;  // may be left out although it has no default, as max_pool2d's stride
  bool exclusive = false;
  std::string help{};                  // one line, for the schema
  std::vector<std::string> choices{};  // of kChoice
  bool above_minimum = false;          // `minimum` itself is not allowed, though `maximum` may be

  bool excludes_minimum() const { return exclusive || above_minimum; }
};

/// A number in [minimum, maximum], and what is true or false; both with a default.
ArgumentType number_argument(std::string name, double value, double minimum, double maximum,
                             std::string help);
ArgumentType flag_argument(std::string name, bool value, std::string help);

/// A layer or optimizer type, by PyTorch's name in lower case, and its arguments in PyTorch's order.
struct NamedType {
  std::string name;
  std::vector<ArgumentType> arguments;
};

std::vector<std::string> type_names(std::span<const NamedType> types);

/// Returns the type called `name`, or nullptr.
const NamedType* find_type(std::span<const NamedType> types, std::string_view name);

/// Returns the type called `name`. Throws ConfigError, naming all types and the nearest, if there is none;
/// `subject` ("optimizer") starts the message.
const NamedType& require_type(std::span<const NamedType> types, std::string_view name,
                              std::string_view subject);

/// Returns the argument of `type` called `name`, or nullptr.
const ArgumentType* find_argument(const NamedType& type, std::string_view name);

/// Returns `value` in the form that ArgumentKind names: 1 as 1.0 for a number, 3 as [3, 3] for a pair.
/// Returns nothing if `type` does not allow the value. The only check of kinds, limits and choices.
std::optional<ArgumentValue> checked_value(const ArgumentType& type, const ArgumentValue& value);

/// Returns what the value may be, for messages: "an integer >= 1". A maximum of 1e9 or more is only named
/// where `given`, the value that was refused, exceeds it; `given` may be nullptr.
std::string allowed_text(const ArgumentType& type, const ArgumentValue* given = nullptr);

/// Returns `given` with every default of `type` filled in. Throws ConfigError for a missing, unknown or
/// out-of-range argument; `subject` ("layer conv1") starts the message.
Arguments complete_arguments(const NamedType& type, const Arguments& given, std::string_view subject);

/// Returns what is called `name` of complete `arguments`, which must have it as a `Value`.
template <class Value>
const Value& value_of(const Arguments& arguments, std::string_view name) {
  return std::get<Value>(arguments.find(name)->second);
}

/// "5", "0.9", "true", "[2, 3]", "\"cos\"": a value as messages show it.
std::string to_string(const ArgumentValue& value);

/// `value` as the shortest decimal that reads back as the same double: "0.01", "1e-05".
std::string number_text(double value);

/// "a, b or c".
std::string listed(std::span<const std::string> names);

}  // namespace sweep
