#include "runmanager/config/key_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/network/layer_spec.h"
#include "core/spec/loss.h"
#include "core/spec/optimizer.h"
#include "core/spec/schedule.h"

namespace sweep {
namespace {

KeyPath split(std::string_view key) {
  KeyPath parts;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t dot = std::min(key.find('.', start), key.size());
    parts.emplace_back(key.substr(start, dot - start));
    start = dot + 1;
  }
  return parts;
}

std::optional<Setting> argument_setting(std::span<const NamedType> types, std::string_view name) {
  for (const NamedType& type : types) {
    for (const ArgumentType& argument : type.arguments) {
      if (argument.name == name) return to_setting(argument);
    }
  }
  return std::nullopt;
}

// What the file's key names when it is a name, or is not there: "sgd" for "optimizer".
std::optional<std::string> default_name(std::string_view key) {
  if (key == "optimizer") return OptimizerSpec{}.type;
  if (key == "schedule") return ScheduleSpec{}.type;
  if (key == "loss") return LossSpec{}.type;
  return std::nullopt;
}

bool is_optimizer_argument(std::string_view name) {
  return argument_setting(optimizer_types(), name).has_value();
}

// "network.layers.conv1.bias", "network.layers.block1.shortcut.0.bias": layers in layers, to any depth.
bool is_layer_argument(const KeyPath& path) {
  if (path[0] != "network" || path.size() < 4 || path.size() % 2 != 0) return false;
  for (std::size_t i = 1; i + 1 < path.size(); i += 2) {
    if (path[i] != "layers" && path[i] != "shortcut") return false;
  }
  return true;
}

// Every key that an axis can have, for suggestions.
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

// The element that `part` names, or nullptr with a problem.
JsonNode* find_element(JsonNode& list, const std::string& part, const JsonPlace& key_place,
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
    std::from_chars(part.data(), part.data() + part.size(), index);  // Out of range: stays beyond the end.
    if (index < list.elements.size()) return &list.elements[index];
  }
  if (list.elements.empty()) {
    problems.add(key_place, fmt::format("there is no {}, the list is empty", in_quotes(part)));
    return nullptr;
  }
  problems.add(key_place, fmt::format("there is no {}, want an index from 0 to {}{}{}", in_quotes(part),
                                      list.elements.size() - 1,
                                      names.empty() ? "" : fmt::format(" or a name: {}", listed(names)),
                                      suggestion(part, names)));
  return nullptr;
}

JsonNode* find_or_add_member(JsonNode& object, const std::string& part,
                             const std::shared_ptr<const JsonPlace>& key_place) {
  if (JsonNode* found = object.find(part)) return found;
  object.members.push_back({part, key_place, {}});
  object.members.back().value.place = key_place;
  return &object.members.back().value;
}

// Makes an object of what stands where one is needed: nothing, or the name of a data set or an optimizer.
bool make_object(JsonNode& node, const std::string& key) {
  if (node.is(JsonKind::kObject)) return true;
  if (node.is(JsonKind::kNull)) {
    node.kind = JsonKind::kObject;
    return true;
  }
  if (!node.is(JsonKind::kString) || (key != "dataset" && key != "then" && !default_name(key))) {
    return false;
  }
  JsonNode object;
  object.kind = JsonKind::kObject;
  object.place = node.place;
  object.members.push_back({"name", node.place, node});
  node = std::move(object);
  return true;
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

}  // namespace

std::string joined(const KeyPath& path) { return fmt::format("{}", fmt::join(path, ".")); }

std::optional<KeyPath> resolve_key(const std::string& key, const JsonPlace& place, bool for_axis,
                                   Problems& problems) {
  KeyPath path = split(key);
  if (path.size() > 1 && path[0] == "params") path.erase(path.begin());
  const bool complete =
      std::none_of(path.begin(), path.end(), [](const std::string& part) { return part.empty(); });
  const Setting* setting = find_setting(file_settings(), path[0]);
  if (complete && setting != nullptr) {
    if (for_axis && !setting->sweepable) {
      const bool repeats = setting->name == "repeats";
      problems.add(place, fmt::format("{} cannot be swept{}", in_quotes(key),
                                      repeats ? ", it stands at the top of the file" : ""));
      return std::nullopt;
    }
    const bool has_parts = setting->kind == SettingKind::kDataset || setting->kind == SettingKind::kNetwork ||
                           setting->kind == SettingKind::kLog || !types_of(setting->kind).empty();
    if (path.size() == 1 || has_parts) return path;
    problems.add(place, fmt::format("{} has no parts, want just {}", in_quotes(path[0]), in_quotes(path[0])));
    return std::nullopt;
  }
  if (complete && path.size() == 1 && is_optimizer_argument(path[0])) return KeyPath{"optimizer", path[0]};

  const std::vector<std::string> keys = sweepable_keys();
  std::string hint = suggestion(path[0], keys);
  if (find_setting(dataset_settings(), key) != nullptr)
    hint = fmt::format(", did you mean \"dataset.{}\"?", key);
  if (find_setting(log_settings(), key) != nullptr) hint = fmt::format(", did you mean \"log.{}\"?", key);
  if (argument_setting(schedule_types(), key)) hint = fmt::format(", did you mean \"schedule.{}\"?", key);
  if (argument_setting(loss_types(), key)) hint = fmt::format(", did you mean \"loss.{}\"?", key);
  if (argument_setting(layer_types(), key))
    hint = fmt::format(", did you mean \"network.layers.LAYER.{}\"?", key);
  problems.add(place,
               fmt::format("unknown key {}, allowed: {}, and parts of these such as optimizer.momentum{}",
                           in_quotes(key), fmt::join(keys, ", "), hint));
  return std::nullopt;
}

std::optional<Setting> setting_at(const KeyPath& path) {
  const auto copy = [](const Setting* setting) { return setting ? std::optional(*setting) : std::nullopt; };
  if (path.size() == 1) return copy(find_setting(file_settings(), path[0]));
  if (path[0] == "dataset" && path.size() == 2) return copy(find_setting(dataset_settings(), path[1]));
  if (path[0] == "log" && path.size() == 2) return copy(find_setting(log_settings(), path[1]));
  if (path.size() == 3 && path[0] == "schedule" && path[1] == "then")
    return argument_setting(schedule_types(), path[2]);
  const Setting* named = path.size() == 2 ? find_setting(file_settings(), path[0]) : nullptr;
  if (named != nullptr && !types_of(named->kind).empty())
    return argument_setting(types_of(named->kind), path[1]);
  if (is_layer_argument(path)) return argument_setting(layer_types(), path.back());
  return std::nullopt;
}

void set_value(JsonNode& root, const KeyPath& path, const JsonNode& value,
               const std::shared_ptr<const JsonPlace>& key_place, Problems& problems) {
  JsonNode* node = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (node->is(JsonKind::kArray)) {
      node = find_element(*node, path[i], *key_place, problems);
      if (node == nullptr) return;
    } else if (i == 0 || make_object(*node, path[i - 1])) {
      node = find_or_add_member(*node, path[i], key_place);
    } else {
      const KeyPath parent(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i));
      problems.add(*key_place, fmt::format("{} is {} and has no {}", in_quotes(joined(parent)),
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
    if (const auto name = default_name(path[0])) return from_json(*name, root.place);
  }
  const std::optional<Setting> setting = setting_at(path);
  if (!setting || setting->default_value.is_null()) return std::nullopt;
  return from_json(setting->default_value, root.place);
}

}  // namespace sweep
