#include "runmanager/sweepfile/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/suggest.h"
#include "runmanager/config/metrics.h"
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

// ", did you mean 5?" for the text "5", if that is a value of the type.
std::string unquoted(const JsonView& node, const ArgumentType& type) {
  if (!node->is_string()) return "";
  const std::string literals[] = {"true", "false"};
  const bool is_boolean = type.kind == ArgumentKind::kBoolean;
  const Json meant = Json::parse(is_boolean ? nearest_name(node.text(), literals) : node.text(), nullptr,
                                 /*allow_exceptions=*/false);
  const std::optional<ArgumentValue> value = argument_value(meant);
  return value && checked_value(type, *value) ? fmt::format(", did you mean {}?", meant.dump()) : "";
}

bool is_of_axis(const KeyPath& path) {
  return !path.empty() && (path.front() == "params" || path.front() == "grids");
}

// For a key of a network's file that is in the wrong object: "lr" in "optimizer", "batch_size" in "dataset".
std::string hint_of_top(const std::string& word, const JsonPlace& place) {
  const std::string name = our_name(word);
  const Setting* const top = find_setting(top_level_settings(), name);
  if (top == nullptr || !top->is_shown) return "";
  if (!place.has_lines() || is_of_axis(place.path)) return did_you_mean(name);
  return fmt::format("; {} belongs at the top of the file", in_quotes(name));
}

// The same, also for parts of keys: "momentum", which belongs in "optimizer", and for settings of a program.
// Nothing if `object` has such a key under another name, or was taken out of its file.
std::string hint_of_place(const JsonView& object, std::span<const Setting> settings, const JsonView& member) {
  const std::string &word = member.key(), name = our_name(word);
  const bool is_file = settings.data() == top_level_settings().data();
  const bool is_alone = object.path().empty() ? !is_file : object.document().json.size() == 1;
  if (find_setting(settings, name) != nullptr) return "";
  const bool is_near = !suggestion(word, setting_names(settings)).empty();
  if (is_command_file(object.document()))
    return object.path().empty() && !is_near ? "; what the program is to get belongs in \"params\"" : "";
  if (is_alone) return "";
  if (const std::string hint = hint_of_top(word, member.place()); !hint.empty()) return hint;
  std::vector<std::string> wholes = wholes_of(name);
  const std::string of_programs[] = {"command"};
  if (wholes.empty() && is_file) return is_near ? "" : suggestion(word, of_programs);
  for (std::string& whole : wholes) whole = in_quotes(whole);
  return wholes.empty() ? "" : fmt::format("; {} belongs in {}", in_quotes(name), listed(wholes));
}

// `allowed`: what messages say instead of what the type does; may be empty.
std::optional<ArgumentValue> read_simple(const JsonView& node, const ArgumentType& type, bool sweepable,
                                         Problems& problems, std::string allowed = "") {
  const std::optional<ArgumentValue> value = argument_value(*node);
  std::optional<ArgumentValue> result = value ? checked_value(type, *value) : std::nullopt;
  if (result) return result;
  if (allowed.empty()) allowed = allowed_text(type, value ? &*value : nullptr);
  if (!is_list_kind(type.kind) && sweepable) allowed += hint_of_values(node);
  if (type.kind == ArgumentKind::kChoice && node->is_string()) {
    const std::string name = nearest_name(node.text(), type.choices);
    problems.add_value(node, allowed, name.empty() && type.name == "metric" ? near_tag(node.text()) : name);
  } else {
    problems.add(node, fmt::format("got {}, want {}{}", describe(node), allowed, unquoted(node, type)));
  }
  return result;
}

// What is meant by an argument that a type does not have. `names`: what it has.
std::string hint_of_argument(const JsonView& object, const JsonView& member, bool is_layer,
                             std::vector<std::string> names) {
  const std::string& key = member.key();
  if (is_layer && (key.starts_with("in_") || key.starts_with("input_") || key == "num_features"))
    return "; input sizes are inferred";
  std::erase_if(names, [&](const std::string& name) { return static_cast<bool>(object.find(name)); });
  std::string hint = suggestion(key, names);
  const JsonPlace place = member.place();
  if (hint.empty() && !is_layer) hint = hint_of_top(key, place);
  // Whether the axis is this argument, which another type has.
  const auto is_it = [&key](const std::string& part) { return part == key || part.ends_with("." + key); };
  if (hint.empty() && !is_layer && is_of_axis(place.path) && !wholes_of(key).empty() &&
      std::ranges::any_of(std::span(place.path).subspan(0, std::min<std::size_t>(place.path.size(), 3)),
                          is_it))
    hint = "; \"when\" limits an axis to runs that have it";
  return hint;
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
  given.problems.add_value(node, row.allowed + (row.sweepable ? hint_of_values(node) : ""));
  return nullptr;
}

}  // namespace

std::string hint_of_values(const JsonView& node) {
  const bool may_be_axis = (node->is_array() || node->is_object()) && !is_of_axis(node.place().path);
  return may_be_axis ? "; values to try belong in \"params\"" : "";
}

const Setting* find_setting(std::span<const Setting> settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

std::optional<Setting> part_setting(const Setting& whole, std::span<const std::string> parts) {
  const bool is_map = whole.shape == SettingShape::kMap;
  const Setting* part = is_map ? &whole.elements->item : find_setting(whole.table(), parts[0]);
  if (part == nullptr) return std::nullopt;
  return parts.size() == 1 ? std::optional(*part) : part_setting(*part, parts.subspan(1));
}

std::vector<std::string> wholes_of(const std::string& key) {
  if (key == "layers") return {"network"};
  std::vector<std::string> wholes;
  for (const Setting& top : top_level_settings()) {
    if (part_setting(top, std::span(&key, 1))) wholes.push_back(top.name);
  }
  return wholes;
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
      problems.add_unknown_key(member, setting_names(settings), hint_of_place(object, settings, member));
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
  const bool is_layer = std::ranges::find(reserved_keys, "type") != reserved_keys.end();
  std::vector<std::string> names;
  // Without a name, the arguments are those of a type that may not be meant.
  if (!is_layer && !object.find("name")) names.emplace_back("name");
  for (const ArgumentType& argument : type.arguments) names.push_back(argument.name);
  for (const std::string& key : reserved_keys) {
    if (key != "name" && key != "type") names.push_back(key);
  }
  for (const JsonView& member : object.children()) {
    if (std::ranges::find(reserved_keys, member.key()) == reserved_keys.end() &&
        find_argument(type, member.key()) == nullptr)
      problems.add(
          member.key_place(),
          fmt::format("{} has no argument {}, {}{}", type.name, in_quotes(member.key()),
                      names.empty() ? "it takes none" : fmt::format("allowed: {}", fmt::join(names, ", ")),
                      hint_of_argument(object, member, is_layer, names)));
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
    problems.add_value(
        node, listed(names) + ", or an object with that \"name\" and arguments" + hint_of_values(node));
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
