// The kinds of rows that the tables of settings are made of.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runmanager/sweepfile/settings/settings.h"

namespace sweep::rows {

inline constexpr double kMaxExactInteger =
    9007199254740992.0;                          // 2^53: doubles hold every integer up to here.
inline constexpr double kMaxImageExtent = 8192;  // pixels
inline constexpr double kMaxCount = 1e9;         // Catches typing errors in epochs, repeats or samples.

/// A key with an integer in [minimum, maximum].
Setting integer(std::string name, double minimum, double maximum, std::int64_t value, std::string help);
/// A key with a number >= 0, or > 0 if it is `positive`. Without `value` it has no default.
Setting number(std::string name, std::optional<ArgumentValue> value, bool positive, std::string help);
Setting boolean(std::string name, bool value, std::string help);
/// A key whose value is one of `choices`. Without `value` it has no default.
Setting choice(std::string name, std::vector<std::string> choices, std::optional<std::string> value,
               std::string help);
Setting path(std::string name, std::string help);
/// A metric of a person's own program.
Setting metric_name(std::string name, std::string help);
/// Numbers per channel, each >= `minimum`, or > it if they are `positive`.
Setting channels(std::string name, double minimum, bool positive);
Setting count_or_fraction(std::string name, std::string help);
Setting directory_name(std::string name, std::string help);
/// Patterns of texts: any, or one with a character at least.
inline constexpr const char *kAnyText = "", *kNotEmpty = ".";

/// A rule for texts, which may read like numbers.
struct TextRule {
  const char* allowed;  // for messages
  bool (*is_good)(const std::string& text);
  const char* pattern;  // for the schema, as far as one goes
};

/// A text that follows `rule`, which has to live as long as the program.
Setting text(std::string name, const TextRule& rule, std::string help);
Setting device(std::string name, std::string value, std::string help);
Setting image_count(std::string name, std::int64_t value, std::string help);
/// A list, or an object of keys of any name. `allowed`: for messages about what is neither, or of another
/// length. `item` needs no name.
Setting list(std::string name, std::string allowed, Setting item, Counts counts, std::string help);
Setting map(std::string name, std::string allowed, Setting item, Counts counts, std::string help);
/// The list, or a value alone in its place, which becomes a list of one if it `is_wrapped`.
Setting or_alone(Setting list, Setting alone, bool is_wrapped = true);
/// An object with these keys. Its schema is called `name`.
Setting object(const std::string& name, std::string help, std::vector<Setting> keys);
/// A type by its name, the first one by default, or an object with that name and the type's arguments. Its
/// schema is called `name`.
Setting named(const std::string& name, std::span<const NamedType> types, std::string help);
/// The objects of a sweep file; `is_of_program`: of one with a "command", whose metrics are the program's.
Setting dataset();
Setting network();
Setting parallel();
Setting stop(bool is_of_program);
Setting search(bool is_of_program);
Setting log();
Setting slurm();
/// A key that its own code reads. `schema` as Setting has it.
Setting custom(std::string name, nlohmann::ordered_json schema, std::string help);

/// The schema of a list of `items`, and of an object with nothing but `properties`.
nlohmann::ordered_json list_of(nlohmann::ordered_json items, Counts counts = {});
nlohmann::ordered_json object_with(nlohmann::ordered_json properties, std::vector<std::string> required = {});
/// The schema that is called `name` in the file's.
nlohmann::ordered_json definition(const std::string& name);

}  // namespace sweep::rows
