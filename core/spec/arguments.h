// Named arguments of layers and optimizers, and tables that say which there are. One table serves the sweep
// file's checks, the schema, the defaults and TensorBoard's graph.
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
  kInteger,      // std::int64_t
  kIntegerPair,  // a number for both, or [height, width]
  kNumber,       // double
  kNumberPair,   // [first, second]
  kChoice,       // std::string, one of `choices`
};

using ArgumentValue =
    std::variant<bool, std::int64_t, double, std::array<std::int64_t, 2>, std::array<double, 2>, std::string>;

using Arguments = std::map<std::string, ArgumentValue, std::less<>>;

/// Stands for "no upper limit" in ArgumentType::maximum.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// One argument that a type takes. Values must lie in [minimum, maximum] (both elements of a pair); with
/// `exclusive` set, strictly between them.
struct ArgumentType {
  std::string name;
  ArgumentKind kind;
  std::optional<ArgumentValue> default_value;  // none: the argument is required, unless `optional`
  double minimum;
  double maximum;
  bool optional = false;  // may be left out although it has no default, as max_pool2d's stride
  bool exclusive = false;
  std::string help{};  // one line, for the schema
  std::vector<std::string> choices{};
};

/// A layer or optimizer type, by PyTorch's name in lower case, and its arguments in PyTorch's order.
struct NamedType {
  std::string name;
  std::vector<ArgumentType> arguments;
};

/// Returns the type called `name`, or nullptr.
const NamedType* find_type(std::span<const NamedType> types, std::string_view name);

/// Returns the type called `name`. Throws ConfigError, naming all types and the nearest, if there is none;
/// `what` ("optimizer") starts the message.
const NamedType& require_type(std::span<const NamedType> types, std::string_view name, std::string_view what);

/// What the argument may be, for messages: "an integer >= 1".
std::string allowed_text(const ArgumentType& type);

/// Returns `given` with every default of `type` filled in. Throws ConfigError for a missing, unknown or
/// out-of-range argument; `what` ("layer conv1") starts the message.
Arguments complete_arguments(const NamedType& type, const Arguments& given, std::string_view what);

/// "5", "0.9", "true", "[2, 3]": a value as error messages and the graph show it.
std::string to_string(const ArgumentValue& value);

}  // namespace sweep
