#include "runmanager/sweepfile/key_path.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/network/layers.h"

namespace sweep {

using Json = nlohmann::ordered_json;

namespace {

std::optional<Setting> layer_argument(std::string_view name) {
  for (const NamedType& type : layer_types()) {
    if (const ArgumentType* argument = find_argument(type, name)) return Setting{*argument};
  }
  return std::nullopt;
}

std::span<const Setting> optimizer_arguments() {
  return find_setting(top_level_settings(), "optimizer")->table();
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

// The index of the element that `part` names; nothing if there is none. Names come first: a layer without one
// is found by its index, and no name reads like the index of another layer.
std::optional<std::size_t> element_index(const Json& list, const std::string& part) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_object() && list[i].contains("name") && list[i]["name"] == part) return i;
  }
  const std::optional<std::size_t> index = number_in<std::size_t>(part);
  return index && *index < list.size() ? index : std::nullopt;
}

std::string missing_element(const Json& list, const std::string& part) {
  if (list.empty()) return fmt::format("there is no {}, the list is empty", in_quotes(part));
  std::vector<std::string> names;
  for (const Json& element : list) {
    const Json name = element.is_object() ? element.value("name", Json()) : Json();
    if (name.is_string()) names.push_back(name);
  }
  return fmt::format("there is no {}, want an index from 0 to {}{}{}", in_quotes(part), list.size() - 1,
                     names.empty() ? "" : fmt::format(" or a name: {}", listed(names)),
                     suggestion(part, names));
}

// Turns `value`, which needs to have members, into an object: null, or the short form of one ("sgd" for
// {"name": "sgd"}, 5 for {"run": 5}). Returns false, and changes nothing, for other values. `path` is the
// value's own.
bool make_object(JsonDocument& root, Json& value, const KeyPath& path) {
  if (value.is_null()) value = Json::object();
  if (value.is_object()) return true;
  const Setting* setting = find_setting(settings_of(root), path.back());
  // "then" is the one key below the top that names a type: the schedule after a warmup.
  const std::string key = path.back() == "then" ? "name" : setting != nullptr ? setting->short_key : "";
  if (key.empty() || (key == "name" ? !value.is_string() : !value.is_number())) return false;
  value = Json{{key, value}};
  root.set_place(path, root.place(path).whole());
  return true;
}

}  // namespace

std::vector<std::string> sweepable_keys() {
  std::vector<std::string> keys;
  for (const Setting& setting : top_level_settings()) {
    if (setting.sweepable && setting.is_shown) keys.push_back(setting.name);
  }
  for (const Setting& argument : optimizer_arguments())
    if (std::ranges::find(keys, argument.name) == keys.end()) keys.push_back(argument.name);
  return keys;
}

KeyPath key_path(std::string_view key) {
  const std::vector<std::string_view> parts = split(key, '.');
  return {parts.begin(), parts.end()};
}

JsonView find_path(const JsonView& root, const KeyPath& path) {
  JsonView value = root;
  for (const std::string& part : path) {
    if (value->is_array()) {
      const std::optional<std::size_t> index = element_index(*value, part);
      value = index ? value.at(*index) : JsonView();
    } else {
      value = value.find(part);
    }
  }
  return value;
}

std::optional<KeyPath> resolve_key(const std::string& key, const JsonPlace& place, KeyUse use,
                                   Problems& problems) {
  if (use == KeyUse::kParameter) return program_parameter(key);
  KeyPath path = key_path(key);
  if (path.size() > 1 && path[0] == "params") path.erase(path.begin());
  const bool complete = std::ranges::find(path, "") == path.end();
  const Setting* setting = find_setting(top_level_settings(), path[0]);
  if (complete && setting != nullptr) {
    if (use == KeyUse::kAxis && !setting->sweepable) {
      const bool repeats = setting->name == "repeats";
      problems.add(place, fmt::format("{} cannot be swept{}", in_quotes(key),
                                      repeats ? ", it belongs at the top of the file" : ""));
      return std::nullopt;
    }
    if (path.size() == 1 || setting->has_parts) return path;
    problems.add(place, fmt::format("{} has no parts, want just {}", in_quotes(path[0]), in_quotes(path[0])));
    return std::nullopt;
  }
  if (complete && path.size() == 1 && find_setting(optimizer_arguments(), path[0]) != nullptr)
    return KeyPath{"optimizer", path[0]};

  const std::vector<std::string> keys = sweepable_keys();
  std::string hint = suggestion(path[0], keys);
  if (const auto wholes = wholes_of(key); !wholes.empty()) hint = did_you_mean(wholes[0] + "." + key);
  if (layer_argument(key)) hint = fmt::format(", did you mean \"network.layers.LAYER.{}\"?", key);
  problems.add(place,
               fmt::format("unknown key {}, allowed: {}, and parts of these such as optimizer.momentum{}",
                           in_quotes(key), fmt::join(keys, ", "), hint));
  return std::nullopt;
}

// No table has a row of this path, so the value may be anything.
KeyPath program_parameter(const std::string& key) { return {"param", key}; }

std::optional<Setting> setting_at(const KeyPath& path, std::span<const Setting> table) {
  if (is_layer_argument(path)) return layer_argument(path.back());
  const Setting* setting = find_setting(table, path[0]);
  if (setting == nullptr) return std::nullopt;
  if (path.size() == 1) return *setting;
  const bool follows_warmup = path.size() == 3 && path[0] == "schedule" && path[1] == "then";
  return part_setting(*setting, std::span(path).subspan(follows_warmup ? 2 : 1));
}

KeyPath set_value(JsonDocument& root, const KeyPath& path, const JsonView& value, const JsonPlace& key_place,
                  Problems& problems) {
  // Walks down and creates missing members, so that "log.images" works without a "log". The order
  // of calls matters: "optimizer" = "adam" after "optimizer.momentum" would undo it (see with_values()).
  Json* parent = &root.json;
  KeyPath at;  // of the parent, with indices in place of names
  for (const std::string& part : path) {
    if (parent->is_array()) {
      const std::optional<std::size_t> index = element_index(*parent, part);
      if (!index) {
        problems.add(key_place, missing_element(*parent, part));
        return {};
      }
      at.push_back(std::to_string(*index));
      parent = &(*parent)[*index];
    } else if (at.empty() || make_object(root, *parent, at)) {
      at.push_back(part);
      const auto [member, is_new] = parent->emplace(part, nullptr);
      if (is_new) root.set_place(at, key_place);
      parent = &*member;
    } else {
      const JsonDocument shown(*parent, root.place(at));
      const KeyPath given(path.begin(), path.begin() + std::ssize(at));
      problems.add(key_place, fmt::format("{} is {} and has no {}", in_quotes(joined(given)), describe(shown),
                                          in_quotes(part)));
      return {};
    }
  }
  root.set(*parent, at, value);
  return at;
}

Json compared_value(const Json& value, const KeyPath& path) {
  if (path.size() > 1 || !value.is_object()) return value;
  if (value.contains("name")) return value.at("name");
  const Setting* const top = find_setting(top_level_settings(), path[0]);
  return top != nullptr && !top->types.empty() ? Json(top->types.front().name) : value;
}

Json value_at(const JsonView& root, const KeyPath& path) {
  if (const JsonView value = find_path(root, path)) return compared_value(*value, path);
  const Setting* const top = find_setting(top_level_settings(), path[0]);
  if (top != nullptr && !top->types.empty() && path.size() <= 2) {
    const Json name = path.size() == 1 ? Json(top->types.front().name) : value_at(root, {path[0]});
    if (path.size() == 1 || path[1] == "name") return name;
    // Types may have different defaults of one argument.
    const NamedType* const type = name.is_string() ? find_type(top->types, name.get<std::string>()) : nullptr;
    const ArgumentType* const argument = type != nullptr ? find_argument(*type, path[1]) : nullptr;
    if (argument != nullptr) return default_of(*argument);
  }
  // "dataset": "mnist" where "dataset.name" is asked for.
  if (const JsonView whole = root.find(path[0]); path.size() == 2 && path[1] == "name" && whole->is_string())
    return *whole;
  const std::optional<Setting> setting = setting_at(path);
  return setting ? default_of(*setting) : Json();
}

}  // namespace sweep
