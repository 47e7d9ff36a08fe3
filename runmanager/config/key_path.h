// Keys as people write them, "optimizer.momentum" or just "momentum", and the places of a sweep file they
// stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/config/json_document.h"
#include "runmanager/config/problems.h"
#include "runmanager/config/settings.h"

namespace sweep {

/// Parts of a dotted key: {"network", "layers", "0", "out_channels"}.
using KeyPath = std::vector<std::string>;

/// Resolves `key`, which stands at `place`, to the path of what it sets: an optimizer's argument may be given
/// bare, and "params.lr" is "lr". Adds a problem and returns nothing if the sweep file has no such key, or if
/// it cannot be swept and `for_axis` is set. Parts below "network" are looked at by set_value().
std::optional<KeyPath> resolve_key(const std::string& key, const JsonPlace& place, bool for_axis,
                                   Problems& problems);

/// The table's line for the value at `path`, or nothing for an object or a key that no table has.
std::optional<Setting> setting_at(const KeyPath& path);

std::string joined(const KeyPath& path);

/// Sets the value at `path`. A name that stands where an object is needed ("optimizer": "sgd") becomes one
/// with that name; elements of lists are found by index or by their "name". Adds a problem where there is no
/// such place.
void set_value(JsonNode& root, const KeyPath& path, const JsonNode& value,
               const std::shared_ptr<const JsonPlace>& key_place, Problems& problems);

/// The value at `path` as it would be read there: of an optimizer or data set that is an object, its name; if
/// nothing is given, the default. Nothing if there is none of these.
std::optional<JsonNode> value_at(const JsonNode& root, const KeyPath& path);

}  // namespace sweep
