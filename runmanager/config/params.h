// The values of the swept keys that make one run of a sweep, and its name, which is that of a directory on
// any file system.
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

/// Keys and values as "lr=0.01,batch_size=1000"; "run" if there are none. Letters, digits and . _ - + stay;
/// every other byte, and dots that would make "..", becomes %XX. Lists and objects are a few words:
/// "dataset.resize=32x32", "dataset.augment=random_crop4+horizontal_flip"; "none" if they are empty. Values
/// of more than 48 characters and names of more than 200 are cut and end in "~" and a hash of the whole.
std::string run_name(const Params& params);

/// Returns the run_name() of each, without keys whose value is the same in all of them: TensorBoard cuts long
/// names, so runs have to differ early. If all keys are constant, as with a single run, the names have all.
/// If two names would be the same on a file system that ignores case, "~" and a number or hash are added.
/// The same list always gives the same names.
std::vector<std::string> run_names(const std::vector<Params>& runs);

/// 16 digits: FNV-1a of 64 bits, the same on every machine, which std::hash need not be.
std::string hash_of(std::string_view text);

}  // namespace sweep
