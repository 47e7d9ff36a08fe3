#include "runmanager/sweepfile/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/suggest.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ArgumentValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

// The value: two integers in brackets as a pair, other numbers in brackets as a list. Nothing for null,
// objects, and lists of anything but numbers.
std::optional<ArgumentValue> argument_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array() || !std::ranges::all_of(json, &Json::is_number)) return std::nullopt;
  // Pairs of integers keep their type; a pair of numbers is told from a list only where the kind is known.
  if (json.size() == 2 && std::ranges::all_of(json, &Json::is_number_integer))
    return json.get<std::array<std::int64_t, 2>>();
  return json.get<std::vector<double>>();
}

// `value` is the node's, or nullptr where it has no ArgumentValue.
void add_refused(const JsonView& node, const ArgumentValue* value, const ArgumentType& type, bool sweepable,
                 Problems& problems) {
  std::string allowed = allowed_text(type, value);
  const bool takes_list = type.kind == ArgumentKind::kIntegerPair || type.kind == ArgumentKind::kNumberPair ||
                          type.kind == ArgumentKind::kNumberList;
  if (type.kind == ArgumentKind::kChoice) {
    const std::string nearest = node->is_string() ? nearest_name(node.text(), type.choices) : "";
    return problems.add_value(node, allowed, nearest);
  }
  if (node->is_array() && !takes_list && sweepable)
    allowed += "; a list of values to try stands in \"params\"";
  if (type.kind == ArgumentKind::kBoolean && node->is_string()) {
    const std::string literals[] = {"true", "false"};
    return problems.add(node, fmt::format("got {}, want {} without quotes{}", describe(node), allowed,
                                          suggestion(node.text(), literals)));
  }
  problems.add_value(node, allowed);
}

std::optional<ArgumentValue> read_simple(const JsonView& node, const ArgumentType& type, bool sweepable,
                                         Problems& problems) {
  const std::optional<ArgumentValue> value = argument_value(*node);
  std::optional<ArgumentValue> result = value ? checked_value(type, *value) : std::nullopt;
  if (!result) add_refused(node, value ? &*value : nullptr, type, sweepable, problems);
  return result;
}

}  // namespace

const Setting* find_setting(std::span<const Setting> settings, std::string_view name) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

std::vector<std::string> setting_names(std::span<const Setting> settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) {
    if (setting.name[0] != '$') names.push_back(setting.name);  // "$schema" is for editors.
  }
  return names;
}

std::vector<std::string> type_names(std::span<const NamedType> types) {
  std::vector<std::string> names;
  for (const NamedType& type : types) names.push_back(type.name);
  return names;
}

bool takes_list(const Setting& setting) {
  if (!setting.format) {
    return setting.kind == ArgumentKind::kIntegerPair || setting.kind == ArgumentKind::kNumberPair ||
           setting.kind == ArgumentKind::kNumberList;
  }
  const auto is_list = [](const nlohmann::ordered_json& schema) {
    return schema.value("type", "") == "array";
  };
  const nlohmann::ordered_json& schema = setting.format->schema;
  if (!schema.is_object()) return false;
  const auto forms = schema.find("anyOf");
  return is_list(schema) || (forms != schema.end() && std::any_of(forms->begin(), forms->end(), is_list));
}

std::span<const NamedType> named_types(const Setting& setting) {
  return setting.format && setting.format->types != nullptr ? setting.format->types()
                                                            : std::span<const NamedType>();
}

std::string allowed_text(const Setting& setting) {
  if (setting.format && !setting.format->allowed.empty()) return setting.format->allowed;
  return allowed_text(static_cast<const ArgumentType&>(setting));
}

bool check_value(const JsonView& node, const Setting& setting, Problems& problems) {
  if (!setting.format) return read_simple(node, setting, setting.sweepable, problems).has_value();
  if (setting.format->check != nullptr) return setting.format->check(node, problems);
  const std::span<const NamedType> types = named_types(setting);
  if (types.empty() || !node->is_string()) return true;  // complete_value() checks it.
  const ArgumentType name{.name = setting.name, .kind = ArgumentKind::kChoice, .choices = type_names(types)};
  return read_simple(node, name, setting.sweepable, problems).has_value();
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
  const bool is_default = setting.default_value && value == json_of(*setting.default_value);
  return setting.recorded == Recorded::kUnlessDefault && is_default ? Json() : value;
}

Json complete_plain(const Setting& setting, const Given& given) {
  const SettingFormat* format = setting.format ? &*setting.format : nullptr;
  Json default_value = setting.default_value ? json_of(*setting.default_value) : Json();
  if (format != nullptr && format->types != nullptr) {
    static const std::string reserved_keys[] = {"name"};
    return complete_named(given.value, format->types(), format->default_type, reserved_keys, given.problems);
  }
  if (format != nullptr && format->settings != nullptr)
    return complete_object(given.value, format->settings(), given.context, given.problems);
  if (!given.value) return default_value;
  if (format == nullptr) {
    const auto value = read_simple(given.value, setting, setting.sweepable, given.problems);
    return value ? json_of(*value) : default_value;
  }
  return check_value(given.value, setting, given.problems) ? *given.value : default_value;
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

Json complete_named(const JsonView& node, std::span<const NamedType> types, const std::string& default_type,
                    std::span<const std::string> reserved_keys, Problems& problems) {
  const std::vector<std::string> names = type_names(types);
  if (node && !node->is_string() && !node->is_object()) {
    problems.add_value(node, listed(names) + ", or an object with that \"name\" and arguments");
    return nullptr;
  }
  const JsonView name = node->is_string() ? node : node.find("name");
  const NamedType* type = find_type(types, default_type);
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
