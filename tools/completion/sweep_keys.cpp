#include "tools/completion/sweep_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/network/layer_spec.h"
#include "core/spec/optimizer.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

JsonNode read_node(const std::filesystem::path& file) {
  try {
    return parse_json(read_file(file), file.string());
  } catch (const Error&) {
    return {};
  }
}

// As the command line would have it; "" for null, lists and objects.
std::string text_of(const JsonNode& node) {
  if (node.is(JsonKind::kBoolean)) return node.boolean ? "true" : "false";
  return node.is(JsonKind::kString) || node.is_number() ? node.text : "";
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool has_parts(const Setting& setting) { return setting.format && setting.format->has_parts; }

// Whether key=value can set it: "params" and the like are more than a value.
bool has_value(const Setting& setting) {
  return setting.kind != ArgumentKind::kCustom || has_parts(setting) || setting.sweepable;
}

// The element of a list that `part` names, by its "name" or its index.
const JsonNode* element_of(const JsonNode& list, const std::string& part) {
  for (std::size_t i = 0; i < list.elements.size(); ++i) {
    const JsonNode* name = list.elements[i].find("name");
    if ((name != nullptr && name->text == part) || std::to_string(i) == part) return &list.elements[i];
  }
  return nullptr;
}

}  // namespace

SweepKeys::SweepKeys(const std::filesystem::path& file) : root_(read_node(file)) {
  JsonNode* network = root_.find("network");
  if (network == nullptr || !network->is(JsonKind::kString)) return;
  JsonNode content = read_node(file.parent_path() / network->text);
  if (content.is(JsonKind::kObject)) *network = std::move(content);
}

std::vector<std::string> SweepKeys::axes() const {
  std::vector<std::string> keys;
  if (const JsonNode* params = root_.find("params")) {
    for (const JsonMember& member : params->members) keys.push_back(member.key);
  }
  return keys;
}

void SweepKeys::complete(const std::string& word, Candidates& candidates) const {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    const std::size_t dot = word.rfind('.');
    if (dot == std::string::npos) return add_keys(candidates);
    return add_parts(split(word.substr(0, dot), '.'), word.substr(0, dot + 1), candidates);
  }
  const std::string key = word.substr(0, equals);
  const std::size_t comma = word.rfind(',');
  const std::string before = word.substr(0, (comma == std::string::npos ? equals : comma) + 1);
  const std::vector<std::string> there = split(before.substr(equals + 1), ',');
  for (const std::string& value : values(key, candidates.files)) {
    if (std::find(there.begin(), there.end(), value) == there.end()) candidates.add(before + value);
  }
}

// The first part of a key.
void SweepKeys::add_keys(Candidates& candidates) const {
  std::set<std::string> added;
  const auto add = [&](const std::string& text, const std::string& help) {
    if (added.insert(text).second) candidates.add(text, help);
  };
  for (const std::string& key : axes()) add(key + "=", "an axis of the file");
  for (const Setting& setting : file_settings()) {
    if (setting.name[0] == '$') continue;
    if (has_value(setting)) add(setting.name + "=", setting.help);
    if (has_parts(setting)) add(setting.name + ".", setting.help);
  }
  const std::vector<std::string> optimizers = given_types("optimizer");
  for (const NamedType& type : optimizer_types()) {
    if (std::find(optimizers.begin(), optimizers.end(), type.name) == optimizers.end()) continue;
    for (const ArgumentType& argument : type.arguments) add(argument.name + "=", argument.help);
  }
}

// The types that the file names for the key, in its axis or itself; without any, all.
std::vector<std::string> SweepKeys::given_types(const std::string& key) const {
  std::vector<std::string> names;
  const auto add = [&names](const JsonNode& node) {
    const JsonNode* name = node.is(JsonKind::kObject) ? node.find("name") : &node;
    if (name != nullptr && name->is(JsonKind::kString)) names.push_back(name->text);
  };
  const JsonNode* params = root_.find("params");
  if (const JsonNode* axis = params != nullptr ? params->find(key) : nullptr) {
    for (const JsonNode& value : axis->elements) add(value);
  }
  if (const JsonNode* given = root_.find(key)) add(*given);
  if (!names.empty()) return names;
  const Setting* setting = find_setting(file_settings(), key);
  return setting != nullptr ? type_names(named_types(*setting)) : names;
}

void SweepKeys::add_parts(const std::vector<std::string>& path, const std::string& prefix,
                          Candidates& candidates) const {
  if (path[0] == "network") return add_network_parts(path, prefix, candidates);
  const Setting* setting = find_setting(file_settings(), path[0]);
  for (std::size_t i = 1; setting != nullptr && i < path.size(); ++i) {
    const bool has_settings = setting->format && setting->format->settings != nullptr;
    setting = has_settings ? find_setting(setting->format->settings(), path[i]) : nullptr;
  }
  if (setting == nullptr || !setting->format) return;
  if (setting->format->settings != nullptr) {
    for (const Setting& part : setting->format->settings())
      candidates.add(prefix + part.name + "=", part.help);
  }
  if (setting->format->types == nullptr) return;
  candidates.add(prefix + "name=");
  std::set<std::string> added;
  const std::vector<std::string> given = given_types(setting->name);
  for (const NamedType& type : setting->format->types()) {
    if (std::find(given.begin(), given.end(), type.name) == given.end()) continue;
    for (const ArgumentType& argument : type.arguments) {
      if (added.insert(argument.name).second) candidates.add(prefix + argument.name + "=", argument.help);
    }
  }
}

// Below "network": lists of layers, layers by name or index, and the arguments of their types.
void SweepKeys::add_network_parts(const std::vector<std::string>& path, const std::string& prefix,
                                  Candidates& candidates) const {
  const JsonNode* node = root_.find("network");
  for (std::size_t i = 1; node != nullptr && i < path.size(); ++i)
    node = node->is(JsonKind::kArray) ? element_of(*node, path[i]) : node->find(path[i]);
  if (node == nullptr) return;
  for (std::size_t i = 0; i < node->elements.size(); ++i) {
    const JsonNode *name = node->elements[i].find("name"), *type = node->elements[i].find("type");
    candidates.add(prefix + (name != nullptr ? name->text : std::to_string(i)) + ".",
                   type != nullptr ? type->text : "");
  }
  for (const char* list : {"layers", "shortcut"}) {
    if (const JsonNode* layers = node->find(list); layers != nullptr && layers->is(JsonKind::kArray))
      candidates.add(prefix + list + ".");
  }
  const JsonNode* type_name = node->find("type");
  const NamedType* type = type_name != nullptr ? find_type(layer_types(), type_name->text) : nullptr;
  if (type == nullptr) return;
  for (const ArgumentType& argument : type->arguments) {
    const JsonNode* given = node->find(argument.name);
    const std::string now = given != nullptr ? text_of(*given) : "";
    candidates.add(prefix + argument.name + "=", now.empty() ? argument.help : "now " + now);
  }
}

// What the key's value can be, those of the file first. Sets `files` if it is the name of a file.
std::vector<std::string> SweepKeys::values(const std::string& key, bool& files) const {
  std::vector<std::string> values;
  const auto add = [&values](const std::string& value) {
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  };
  const JsonNode* params = root_.find("params");
  if (const JsonNode* axis = params != nullptr ? params->find(key) : nullptr) {
    for (const JsonNode& value : axis->elements) add(text_of(value));
  }
  Problems problems;
  const auto path = resolve_key(key, {}, false, problems);
  if (!path) return values;
  if (const auto now = value_at(root_, *path)) add(text_of(*now));
  const bool is_name = path->size() == 2 && path->back() == "name";
  const auto setting = setting_at(is_name ? KeyPath{path->front()} : *path);
  if (!setting) return values;
  if (setting->kind == ArgumentKind::kBoolean) {
    for (const char* value : {"true", "false"}) add(value);
  }
  for (const std::string& choice : setting->choices) add(choice);
  for (const NamedType& type : named_types(*setting)) add(type.name);
  if (path->front() == "device") {
    for (const char* device : {"auto", "cpu", "cuda"}) add(device);
  }
  if (path->front() == "dataset" && (path->size() == 1 || is_name)) {
    for (const std::string& name : dataset_names()) add(name);
  }
  files = setting->kind == ArgumentKind::kPath || *path == KeyPath{"network"} || *path == KeyPath{"init"};
  return values;
}

}  // namespace sweep
