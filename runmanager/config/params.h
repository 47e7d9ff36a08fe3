// The values of the swept keys that make one run of a sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sweep {

/// A swept value with the type it has in the file. A key that is an integer in one run and a fraction in
/// another is a double in all of them, so that TensorBoard sees one type per key.
using ParamValue = std::variant<bool, std::int64_t, double, std::string>;

using Params = std::vector<std::pair<std::string, ParamValue>>;

/// The parameter that distinguishes repeats of a combination.
inline constexpr std::string_view kRepeatKey = "repeat";

/// The value of `key`; null if there is none.
const ParamValue* find_param(const Params& params, std::string_view key);

/// "0.01", "1e-05", "true", "adam": a value as run names and tables show it, before escaping.
std::string param_text(const ParamValue& value);
/// A number, whole or not; nothing for a text or a truth value.
std::optional<double> param_number(const ParamValue& value);
/// Whether the value is a list or an object, which a parameter holds as its JSON.
bool is_json_text(const ParamValue& value);
/// The text of the value of `key`; "" if there is none.
std::string param_text(const Params& params, std::string_view key);

/// Gives each key one type in all `runs`, as TensorBoard needs it: integers next to fractions become doubles,
/// any other mix becomes text.
void unify_types(const std::vector<Params*>& runs);

}  // namespace sweep
