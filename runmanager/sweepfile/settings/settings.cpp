#include "runmanager/sweepfile/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/suggest.h"

namespace sweep {
namespace {

// `value` is the node's, or nullptr where it has no ArgumentValue.
void add_refused(const JsonNode& node, const ArgumentValue* value, const ArgumentType& type, bool sweepable,
                 Problems& problems) {
  std::string allowed = allowed_text(type, value);
  const bool takes_list = type.kind == ArgumentKind::kIntegerPair || type.kind == ArgumentKind::kNumberPair ||
                          type.kind == ArgumentKind::kNumberList;
  if (type.kind == ArgumentKind::kChoice) {
    const std::string nearest = node.is(JsonKind::kString) ? nearest_name(node.text, type.choices) : "";
    return problems.add_value(node, allowed, nearest);
  }
  if (node.is(JsonKind::kArray) && !takes_list && sweepable)
    allowed += "; a list of values to try stands in \"params\"";
  if (type.kind == ArgumentKind::kBoolean && node.is(JsonKind::kString)) {
    const std::string literals[] = {"true", "false"};
    return problems.add(*node.location, fmt::format("got {}, want {} without quotes{}", describe(node),
                                                    allowed, suggestion(node.text, literals)));
  }
  problems.add_value(node, allowed);
}

std::optional<ArgumentValue> read_simple(const JsonNode& node, const ArgumentType& type, bool sweepable,
                                         Problems& problems) {
  const std::optional<ArgumentValue> value = argument_value(node);
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

std::optional<ArgumentValue> argument_value(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kBoolean:
      return node.boolean;
    case JsonKind::kInteger:
      return node.integer;
    case JsonKind::kNumber:
      return node.number;
    case JsonKind::kString:
      return node.text;
    case JsonKind::kArray:
      break;
    case JsonKind::kNull:
    case JsonKind::kObject:
      return std::nullopt;
  }
  const std::vector<JsonNode>& list = node.elements;
  const auto all = [&](auto is) { return std::all_of(list.begin(), list.end(), is); };
  if (!all([](const JsonNode& e) { return e.is_number(); })) return std::nullopt;
  // Pairs of integers keep their type; a pair of numbers is told from a list only where the kind is known.
  if (list.size() == 2 && all([](const JsonNode& e) { return e.is(JsonKind::kInteger); }))
    return std::array{list[0].integer, list[1].integer};
  std::vector<double> numbers;
  numbers.reserve(list.size());
  for (const JsonNode& element : list) numbers.push_back(element.number);
  return numbers;
}

std::optional<ArgumentValue> read_value(const JsonNode& node, const ArgumentType& type, Problems& problems) {
  return read_simple(node, type, true, problems);
}

bool check_value(const JsonNode& node, const Setting& setting, Problems& problems) {
  if (!setting.format) return read_simple(node, setting, setting.sweepable, problems).has_value();
  if (setting.format->check != nullptr) return setting.format->check(node, problems);
  const std::span<const NamedType> types = named_types(setting);
  if (types.empty() || !node.is(JsonKind::kString)) return true;  // A reader of its own checks it.
  const ArgumentType name{.name = setting.name, .kind = ArgumentKind::kChoice, .choices = type_names(types)};
  return read_simple(node, name, setting.sweepable, problems).has_value();
}

void check_keys(const JsonNode& object, std::span<const Setting> settings, Problems& problems) {
  for (const JsonMember& member : object.members) {
    if (find_setting(settings, member.key) == nullptr)
      problems.add_unknown_key(member, setting_names(settings));
  }
}

const JsonNode* SettingReader::find(std::string_view name) const {
  const JsonNode* node = object_ == nullptr ? nullptr : object_->find(name);
  return node != nullptr && check_value(*node, *find_setting(settings_, name), problems_) ? node : nullptr;
}

ArgumentValue SettingReader::value(std::string_view name) const {
  const Setting& setting = *find_setting(settings_, name);
  if (const JsonNode* node = find(name)) {
    const ArgumentValue value = argument_value(*node).value();
    return setting.format ? value : checked_value(setting, value).value();
  }
  return setting.default_value.value();
}

}  // namespace sweep
