#include "runmanager/sweepfile/key_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/network/layer_spec.h"
#include "core/spec/optimizer.h"
#include "core/spec/schedule.h"

namespace sweep {
namespace {

std::optional<Setting> argument_setting(std::span<const NamedType> types, std::string_view name) {
  for (const NamedType& type : types) {
    if (const ArgumentType* argument = find_argument(type, name)) return Setting{*argument};
  }
  return std::nullopt;
}

const SettingFormat* format_of(std::string_view key) {
  const Setting* setting = find_setting(file_settings(), key);
  return setting != nullptr && setting->format ? &*setting->format : nullptr;
}

// The row for a part of a key with parts: "images" of "log", "momentum" of "optimizer", "stages" of
// "parallel"'s "pipeline".
std::optional<Setting> part_setting(const SettingFormat& format, std::span<const std::string> parts) {
  if (format.types != nullptr)
    return parts.size() == 1 ? argument_setting(format.types(), parts[0]) : std::nullopt;
  const Setting* setting = format.settings != nullptr ? find_setting(format.settings(), parts[0]) : nullptr;
  if (setting == nullptr) return std::nullopt;
  if (parts.size() == 1) return *setting;
  return setting->format ? part_setting(*setting->format, parts.subspan(1)) : std::nullopt;
}

// The name that holds where the file's key is not given: "sgd" for "optimizer".
std::optional<std::string> default_name(std::string_view key) {
  const SettingFormat* format = format_of(key);
  if (format == nullptr || format->default_type.empty()) return std::nullopt;
  return format->default_type;
}

bool is_optimizer_argument(std::string_view name) {
  return argument_setting(optimizer_types(), name).has_value();
}

// Accepts "network.layers.conv1.bias" and "network.layers.block1.shortcut.0.bias": "network", then pairs of a
// list and a layer in it, to any depth, then the argument. So the number of parts is even.
bool is_layer_argument(const KeyPath& path) {
  if (path[0] != "network" || path.size() < 4 || path.size() % 2 != 0) return false;
  for (std::size_t i = 1; i + 1 < path.size(); i += 2) {
    if (path[i] != "layers" && path[i] != "shortcut") return false;
  }
  return true;
}

// Returns every key that an axis can have, for suggestions.
std::vector<std::string> sweepable_keys() {
  std::vector<std::string> keys;
  for (const Setting& setting : file_settings()) {
    if (setting.sweepable) keys.push_back(setting.name);
  }
  for (const NamedType& type : optimizer_types()) {
    for (const ArgumentType& argument : type.arguments) {
      if (std::find(keys.begin(), keys.end(), argument.name) == keys.end()) keys.push_back(argument.name);
    }
  }
  return keys;
}

bool is_index(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the element that `part` names, or adds a problem and returns nullptr. Names come first: a layer
// without one is found by its index, and no name reads like the index of another layer.
JsonNode* find_element(JsonNode& list, const std::string& part, const JsonLocation& key_location,
                       Problems& problems) {
  std::vector<std::string> names;
  for (JsonNode& element : list.elements) {
    if (const JsonNode* name = element.find("name"); name != nullptr && name->is(JsonKind::kString)) {
      if (name->text == part) return &element;
      names.push_back(name->text);
    }
  }
  if (is_index(part)) {
    std::size_t index = list.elements.size();
    std::from_chars(part.data(), part.data() + part.size(), index);  // Out of range: `index` keeps the size.
    if (index < list.elements.size()) return &list.elements[index];
  }
  if (list.elements.empty()) {
    problems.add(key_location, fmt::format("there is no {}, the list is empty", in_quotes(part)));
    return nullptr;
  }
  problems.add(key_location, fmt::format("there is no {}, want an index from 0 to {}{}{}", in_quotes(part),
                                         list.elements.size() - 1,
                                         names.empty() ? "" : fmt::format(" or a name: {}", listed(names)),
                                         suggestion(part, names)));
  return nullptr;
}

JsonNode* find_or_add_member(JsonNode& object, const std::string& part,
                             const std::shared_ptr<const JsonLocation>& key_location) {
  if (JsonNode* found = object.find(part)) return found;
  object.members.push_back({part, key_location, {}});
  object.members.back().value.location = key_location;
  return &object.members.back().value;
}

// Turns `node`, which needs to have members, into an object: null, or the short form of one ("sgd" for
// {"name": "sgd"}). Returns false, and changes nothing, for other values. `key` is the node's own.
bool make_object(JsonNode& node, const std::string& key) {
  if (node.is(JsonKind::kObject)) return true;
  if (node.is(JsonKind::kNull)) {
    node.kind = JsonKind::kObject;
    return true;
  }
  const SettingFormat* format = format_of(key);
  // "then" is the one key below the top that names a type: the schedule after a warmup.
  const bool short_form = key == "then" || (format != nullptr && format->short_form);
  if (!node.is(JsonKind::kString) || !short_form) return false;
  JsonNode object;
  object.kind = JsonKind::kObject;
  object.location = node.location;
  object.members.push_back({"name", node.location, node});
  node = std::move(object);
  return true;
}

}  // namespace

KeyPath key_path(std::string_view key) {
  KeyPath parts;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t dot = std::min(key.find('.', start), key.size());
    parts.emplace_back(key.substr(start, dot - start));
    start = dot + 1;
  }
  return parts;
}

const JsonNode* find_path(const JsonNode& root, const KeyPath& path) {
  const JsonNode* node = &root;
  for (const std::string& part : path) {
    if (node->is(JsonKind::kArray)) {
      const JsonNode* element = nullptr;
      for (std::size_t i = 0; i < node->elements.size(); ++i) {
        const JsonNode* name = node->elements[i].find("name");
        if ((name != nullptr && name->text == part) || std::to_string(i) == part)
          element = &node->elements[i];
      }
      node = element;
    } else {
      node = node->find(part);
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

std::string joined(const KeyPath& path) { return fmt::format("{}", fmt::join(path, ".")); }

std::optional<KeyPath> resolve_key(const std::string& key, const JsonLocation& location, bool for_axis,
                                   Problems& problems) {
  KeyPath path = key_path(key);
  if (path.size() > 1 && path[0] == "params") path.erase(path.begin());
  const bool complete =
      std::none_of(path.begin(), path.end(), [](const std::string& part) { return part.empty(); });
  const Setting* setting = find_setting(file_settings(), path[0]);
  if (complete && setting != nullptr) {
    if (for_axis && !setting->sweepable) {
      const bool repeats = setting->name == "repeats";
      problems.add(location, fmt::format("{} cannot be swept{}", in_quotes(key),
                                         repeats ? ", it stands at the top of the file" : ""));
      return std::nullopt;
    }
    const bool has_parts = setting->format && setting->format->has_parts;
    if (path.size() == 1 || has_parts) return path;
    problems.add(location,
                 fmt::format("{} has no parts, want just {}", in_quotes(path[0]), in_quotes(path[0])));
    return std::nullopt;
  }
  if (complete && path.size() == 1 && is_optimizer_argument(path[0])) return KeyPath{"optimizer", path[0]};

  const std::vector<std::string> keys = sweepable_keys();
  std::string hint = suggestion(path[0], keys);
  for (const Setting& top : file_settings()) {
    if (top.format && part_setting(*top.format, std::span(&key, 1)))
      hint = fmt::format(", did you mean \"{}.{}\"?", top.name, key);
  }
  if (argument_setting(layer_types(), key))
    hint = fmt::format(", did you mean \"network.layers.LAYER.{}\"?", key);
  problems.add(location,
               fmt::format("unknown key {}, allowed: {}, and parts of these such as optimizer.momentum{}",
                           in_quotes(key), fmt::join(keys, ", "), hint));
  return std::nullopt;
}

// No table has a row of this path, so the value may be anything.
KeyPath program_parameter(const std::string& key) { return {"param", key}; }

std::optional<Setting> setting_at(const KeyPath& path) {
  if (path.size() == 1) {
    const Setting* setting = find_setting(file_settings(), path[0]);
    return setting != nullptr ? std::optional(*setting) : std::nullopt;
  }
  if (is_layer_argument(path)) return argument_setting(layer_types(), path.back());
  const SettingFormat* format = format_of(path[0]);
  const bool follows_warmup = path.size() == 3 && path[0] == "schedule" && path[1] == "then";
  return format != nullptr ? part_setting(*format, std::span(path).subspan(follows_warmup ? 2 : 1))
                           : std::nullopt;
}

void set_value(JsonNode& root, const KeyPath& path, const JsonNode& value,
               const std::shared_ptr<const JsonLocation>& key_location, Problems& problems) {
  // Walks down, creating members where there are none, so that "log.images" works without a "log". The order
  // of calls matters: "optimizer" = "adam" after "optimizer.momentum" would undo it (see with_values()).
  JsonNode* node = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (node->is(JsonKind::kArray)) {
      node = find_element(*node, path[i], *key_location, problems);
      if (node == nullptr) return;
    } else if (i == 0 || make_object(*node, path[i - 1])) {
      node = find_or_add_member(*node, path[i], key_location);
    } else {
      const KeyPath parent(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i));
      problems.add(*key_location, fmt::format("{} is {} and has no {}", in_quotes(joined(parent)),
                                              describe(*node), in_quotes(path[i])));
      return;
    }
  }
  *node = value;
}

std::optional<JsonNode> value_at(const JsonNode& root, const KeyPath& path) {
  if (const JsonNode* node = find_path(root, path)) {
    if (path.size() == 1 && node->is(JsonKind::kObject)) {
      if (const JsonNode* name = node->find("name")) return *name;
    }
    return *node;
  }
  // "optimizer": "sgd" where "optimizer.name" is asked for.
  if (path.size() == 2 && path[1] == "name") {
    if (const JsonNode* node = root.find(path[0]); node != nullptr && node->is(JsonKind::kString))
      return *node;
  }
  if (path.size() == 1 || (path.size() == 2 && path[1] == "name")) {
    if (const auto name = default_name(path[0])) return from_json(*name, root.location);
  }
  const std::optional<Setting> setting = setting_at(path);
  if (!setting || !setting->default_value) return std::nullopt;
  return std::visit([&](const auto& value) { return from_json(value, root.location); },
                    *setting->default_value);
}

}  // namespace sweep
