// Keys as people write them, "optimizer.momentum" or just "momentum", the values of a sweep file that they
// represent, and what the command line changes in it: key=value, or key=value,value,… for an axis.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/text/json_document.h"

namespace sweep {

struct LoadOptions;

/// Returns every key without dots that an axis can have, for suggestions.
std::vector<std::string> sweepable_keys();

/// Splits "optimizer.momentum" at its dots.
KeyPath key_path(std::string_view key);

/// The path of a parameter of a person's own program, which may have any key.
KeyPath program_parameter(const std::string& key);

/// What a key is of.
enum class KeyUse { kValue, kAxis, kParameter };  // the last one: of a person's own program

/// Resolves `key`, which is at `place`, to the path of what it sets: an optimizer's argument may be
/// given bare, and "params.lr" is "lr". Adds a problem and returns nothing if the sweep file has no such key,
/// or if it is of an axis and cannot be swept. Parts below "network" are checked by set_value().
std::optional<KeyPath> resolve_key(const std::string& key, const JsonPlace& place, KeyUse use,
                                   Problems& problems);

/// Returns the row for the value at `path`, or nothing for a key that `table`, of a whole file, does not
/// have.
std::optional<Setting> setting_at(const KeyPath& path, std::span<const Setting> table = top_level_settings());

/// Returns the value at `path`, where elements of lists go by index or by their "name"; nothing if there is
/// none.
JsonView find_path(const JsonView& root, const KeyPath& path);

/// Sets the value at `path`. A name in the place of an object ("optimizer": "sgd") becomes an object with
/// that name; elements of lists are found by index or by their "name". Returns the path with indices only. If
/// there is no such value, adds a problem at `key_place`, the origin of the path, and returns nothing.
KeyPath set_value(JsonDocument& root, const KeyPath& path, const JsonView& value, const JsonPlace& key_place,
                  Problems& problems);

/// What conditions compare of the value at `path`: the name of an optimizer or data set that is an object,
/// else the value.
nlohmann::ordered_json compared_value(const nlohmann::ordered_json& value, const KeyPath& path);

/// Returns the compared_value() at `path`; the default if nothing is given; null if there is no default.
nlohmann::ordered_json value_at(const JsonView& root, const KeyPath& path);

/// One key with one value.
struct Assignment {
  KeyPath path;
  JsonPlace place;  // of the key
  JsonDocument value;
};

/// Reads "lr=0.1,0.01" and the options --epochs and --seed and changes `root`: the values of an axis of the
/// file are replaced; several values for a key that is no axis make one, after the others; plain values of
/// "name" and "repeats" are set. Returns the other plain values, which are set once the network's file has
/// been read. A value is JSON if it can be read so, else a string. Reports every mistake, naming the
/// override.
std::vector<Assignment> apply_overrides(JsonDocument& root, std::span<const std::string> overrides,
                                        const LoadOptions& options, Problems& problems);

}  // namespace sweep
