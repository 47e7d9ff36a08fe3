#include "runmanager/sweepfile/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/suggest.h"
#include "runmanager/config/run_config.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ArgumentValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

// Names in order, of those that are shown.
std::vector<std::string> setting_names(std::span<const Setting> settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) {
    if (setting.is_shown) names.push_back(setting.name);
  }
  return names;
}

bool is_list_kind(ArgumentKind kind) {
  return kind == ArgumentKind::kIntegerPair || kind == ArgumentKind::kNumberPair ||
         kind == ArgumentKind::kNumberList;
}

// `allowed`: what messages say instead of what the type does; may be empty.
std::optional<ArgumentValue> read_simple(const JsonView& node, const ArgumentType& type, bool sweepable,
                                         Problems& problems, std::string allowed = "") {
  const std::optional<ArgumentValue> value = argument_value(*node);
  std::optional<ArgumentValue> result = value ? checked_value(type, *value) : std::nullopt;
  if (result) return result;
  if (allowed.empty()) allowed = allowed_text(type, value ? &*value : nullptr);
  if (node->is_array() && !is_list_kind(type.kind) && sweepable)
    allowed += "; a list of values to try belongs in \"params\"";
  if (type.kind == ArgumentKind::kChoice && node->is_string()) {
    problems.add_value(node, allowed, nearest_name(node.text(), type.choices));
  } else if (type.kind == ArgumentKind::kBoolean && node->is_string()) {
    const std::string literals[] = {"true", "false"};
    problems.add(node, fmt::format("got {}, want {} without quotes{}", describe(node), allowed,
                                   suggestion(node.text(), literals)));
  } else {
    problems.add_value(node, allowed);
  }
  return result;
}

// A list or an object, element by element; null if anything is wrong.
Json complete_elements(const Setting& row, const Given& given) {
  const Elements& elements = *row.elements;
  const JsonView& node = given.value;
  const bool is_map = row.shape == SettingShape::kMap;
  const auto complete = [&](const Setting& item, const JsonView& element) {
    return complete_value(item, {element, node, given.before, given.context, given.problems});
  };
  if (elements.alone && !node->is_array()) {
    Json value = complete(*elements.alone, node);
    return elements.is_wrapped && !value.is_null() ? Json::array({std::move(value)}) : value;
  }
  if ((is_map ? !node->is_object() : !node->is_array()) || node->size() < elements.counts.minimum ||
      node->size() > elements.counts.maximum) {
    given.problems.add_value(node, allowed_text(row));
    return nullptr;
  }
  bool is_good = true;
  Json all = is_map ? Json::object() : Json::array();
  for (const JsonView& element : node.children()) {
    Json value = complete(elements.item, element);
    is_good &= !value.is_null();
    if (is_map)
      all[element.key()] = std::move(value);
    else
      all.push_back(std::move(value));
  }
  return is_good ? all : Json();
}

// Keys of another table, or what represents an object with one of them.
Json complete_keys(const Setting& row, const Given& given) {
  const JsonView& node = given.value;
  if (!node && row.only_if_given) return nullptr;
  if (!node || node->is_object() || row.allowed.empty())
    return complete_object(node, row.table(), given.context, given.problems);
  const Setting* const key = find_setting(row.table(), row.short_key);
  if (key != nullptr && (key->kind == ArgumentKind::kPath ? node->is_string() : node->is_number())) {
    const JsonDocument object(Json{{row.short_key, *node}}, node.place().whole());
    return complete_object(object, row.table(), given.context, given.problems);
  }
  const Json words = row.schema.value("enum", Json::array());
  if (key == nullptr && std::ranges::find(words, *node) != words.end()) return *node;
  given.problems.add_value(node, row.allowed);
  return nullptr;
}

}  // namespace

const Setting* find_setting(std::span<const Setting> settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

bool takes_list(const Setting& setting) {
  return is_list_kind(setting.kind) || setting.shape == SettingShape::kList;
}

Json default_of(const ArgumentType& setting) {
  return setting.default_value ? json_of(*setting.default_value) : Json();
}

std::string allowed_text(const Setting& setting) {
  return setting.allowed.empty() ? allowed_text(static_cast<const ArgumentType&>(setting)) : setting.allowed;
}

bool check_value(const JsonView& node, const Setting& setting, Problems& problems) {
  switch (setting.shape) {
    case SettingShape::kSimple:
      return read_simple(node, setting, setting.sweepable, problems, setting.allowed).has_value();
    case SettingShape::kList:
    case SettingShape::kMap:
      return !complete_elements(setting, {node, {}, {}, {}, problems}).is_null();
    case SettingShape::kNamed: {
      const ArgumentType name{
          .name = setting.name, .kind = ArgumentKind::kChoice, .choices = type_names(setting.types)};
      return !node->is_string() || read_simple(node, name, setting.sweepable, problems);
    }
    case SettingShape::kOwn:
      return !setting.check || setting.check(node, problems);
    case SettingShape::kObject:
      break;
  }
  return true;  // complete_value() checks objects.
}

void check_keys(const JsonView& object, std::span<const Setting> settings, Problems& problems) {
  if (!object->is_object()) return;
  for (const JsonView& member : object.children()) {
    if (find_setting(settings, member.key()) == nullptr)
      problems.add_unknown_key(member, setting_names(settings));
  }
}

Json complete_value(const Setting& setting, const Given& given) {
  Json value = (setting.complete != nullptr ? setting.complete : complete_plain)(setting, given);
  const bool is_default = setting.default_value && value == default_of(setting);
  return !setting.default_is_recorded && is_default ? Json() : value;
}

Json complete_plain(const Setting& setting, const Given& given) {
  static const std::string reserved_keys[] = {"name"};
  if (setting.shape == SettingShape::kNamed)
    return complete_named(given.value, setting.types, reserved_keys, given.problems);
  if (setting.shape == SettingShape::kObject) return complete_keys(setting, given);
  if (!given.value) return default_of(setting);
  if (setting.elements) {
    Json all = complete_elements(setting, given);
    return all.is_null() ? default_of(setting) : all;
  }
  if (setting.shape == SettingShape::kSimple) {
    const auto value = read_simple(given.value, setting, setting.sweepable, given.problems, setting.allowed);
    return value ? json_of(*value) : default_of(setting);
  }
  return check_value(given.value, setting, given.problems) ? *given.value : default_of(setting);
}

Json complete_object(const JsonView& object, std::span<const Setting> settings, const ReadContext& context,
                     Problems& problems) {
  Json json = Json::object();
  if (object && !object->is_object())
    problems.add_value(object,
                       fmt::format("an object with any of: {}", fmt::join(setting_names(settings), ", ")));
  check_keys(object, settings, problems);
  for (const Setting& setting : settings) {
    Json value = complete_value(setting, {object.find(setting.name), object, json, context, problems});
    if (!value.is_null()) json[setting.name] = std::move(value);
  }
  return json;
}

void complete_arguments(const JsonView& object, const NamedType& type,
                        std::span<const std::string> reserved_keys, Json& json, Problems& problems) {
  std::vector<std::string> names;
  for (const ArgumentType& argument : type.arguments) names.push_back(argument.name);
  for (const std::string& key : reserved_keys) {
    if (key != "name" && key != "type") names.push_back(key);
  }
  for (const JsonView& member : object.children()) {
    if (std::ranges::find(reserved_keys, member.key()) != reserved_keys.end() ||
        find_argument(type, member.key()) != nullptr)
      continue;
    problems.add(
        member.key_place(),
        fmt::format("{} has no argument {}, {}{}", type.name, in_quotes(member.key()),
                    names.empty() ? "it takes none" : fmt::format("allowed: {}", fmt::join(names, ", ")),
                    suggestion(member.key(), names)));
  }
  for (const ArgumentType& argument : type.arguments) {
    if (const JsonView given = object.find(argument.name)) {
      if (const auto value = read_simple(given, argument, true, problems))
        json[argument.name] = json_of(*value);
    } else if (argument.default_value) {
      json[argument.name] = json_of(*argument.default_value);
    } else if (!argument.optional) {
      problems.add(object, fmt::format("{} needs {}, {}", type.name, in_quotes(argument.name),
                                       allowed_text(argument)));
    }
  }
}

Json complete_named(const JsonView& node, std::span<const NamedType> types,
                    std::span<const std::string> reserved_keys, Problems& problems) {
  const std::vector<std::string> names = type_names(types);
  if (node && !node->is_string() && !node->is_object()) {
    problems.add_value(node, listed(names) + ", or an object with that \"name\" and arguments");
    return nullptr;
  }
  const JsonView name = node->is_string() ? node : node.find("name");
  const NamedType* type = &types.front();
  if (name) {
    type = name->is_string() ? find_type(types, name.text()) : nullptr;
    if (type == nullptr) {
      problems.add_value(name, listed(names), name->is_string() ? nearest_name(name.text(), names) : "");
      return nullptr;
    }
  }
  const std::size_t problems_before = problems.size();
  Json json = {{"name", type->name}};
  complete_arguments(node, *type, reserved_keys, json, problems);
  return problems.size() == problems_before ? json : Json();
}

}  // namespace sweep
