// The "network" of a sweep file: finding and reading files, and checking layers against the table of layer
// types.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "runmanager/sweepfile/config_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLayerNameLength = 64;

// Layer names become parts of parameter names, graph nodes and dotted keys, so no dots or slashes.
bool is_layer_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxLayerNameLength &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
         });
}

void check_layer_name(const JsonNode& node, std::size_t index, Problems& problems) {
  if (!node.is(JsonKind::kString) || !is_layer_name(node.text)) {
    problems.add_value(
        node, fmt::format("a name of letters, digits, _ and -, at most {} of them", kMaxLayerNameLength));
  } else if (node.text.find_first_not_of("0123456789") == std::string::npos &&
             node.text != std::to_string(index)) {
    problems.add(*node.location,
                 fmt::format("got {}, which reads like the index of a layer, want a word", describe(node)));
  }
}

// Keys of a layer that are not arguments.
std::vector<std::string> reserved_keys(const std::string& type) {
  std::vector<std::string> keys = {"name", "type"};
  if (has_inner_layers(type)) keys.emplace_back("layers");
  if (type == "residual") keys.emplace_back("shortcut");
  return keys;
}

std::vector<LayerSpec> read_layers(const JsonNode& list, Problems& problems);

// Reads the layers inside a sequential or residual.
void read_inner_layers(const JsonNode& node, LayerSpec& layer, Problems& problems) {
  const JsonNode* layers = node.find("layers");
  if (layers == nullptr) {
    problems.add(*node.location, fmt::format("{} needs \"layers\", a list of layers", layer.type));
  } else if (!layers->is(JsonKind::kArray) || layers->elements.empty()) {
    problems.add_value(*layers, "a list with at least one layer");
  } else {
    layer.layers = read_layers(*layers, problems);
  }
  const JsonNode* shortcut = layer.type == "residual" ? node.find("shortcut") : nullptr;
  if (shortcut == nullptr) return;
  if (!shortcut->is(JsonKind::kArray)) return problems.add_value(*shortcut, "a list of layers");
  layer.shortcut = read_layers(*shortcut, problems);
  for (std::size_t i = 0; i < layer.layers.size(); ++i) {
    if (layer.layers[i].name != "shortcut") continue;
    problems.add(*layers->elements[i].location,
                 "a layer is called \"shortcut\", which is what the residual's shortcut is called, want "
                 "another name");
  }
}

LayerSpec read_layer(const JsonNode& node, std::size_t index, Problems& problems) {
  LayerSpec layer;
  layer.name = std::to_string(index);  // As in torch.nn.Sequential.
  if (!node.is(JsonKind::kObject)) {
    problems.add_value(node, "an object: a layer with a \"type\"");
    return layer;
  }
  if (const JsonNode* name = node.find("name")) {
    check_layer_name(*name, index, problems);
    layer.name = name->text;
  }
  const std::vector<std::string> types = type_names(layer_types());
  const JsonNode* type_node = node.find("type");
  if (type_node == nullptr) {
    problems.add(*node.location, fmt::format("a layer needs a \"type\": {}", listed(types)));
    return layer;
  }
  const NamedType* type =
      type_node->is(JsonKind::kString) ? find_type(layer_types(), type_node->text) : nullptr;
  if (type == nullptr) {
    problems.add_value(*type_node, listed(types),
                       type_node->is(JsonKind::kString) ? nearest_name(type_node->text, types) : "");
    return layer;
  }
  layer.type = type->name;
  layer.arguments = read_arguments(node, *type, reserved_keys(layer.type), problems);
  if (has_inner_layers(layer.type)) read_inner_layers(node, layer, problems);
  return layer;
}

std::vector<LayerSpec> read_layers(const JsonNode& list, Problems& problems) {
  std::vector<LayerSpec> layers;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.elements.size(); ++i) {
    layers.push_back(read_layer(list.elements[i], i, problems));
    if (names.insert(layers.back().name).second) continue;
    problems.add(*list.elements[i].location, fmt::format("a second layer is called {}, want different names",
                                                         in_quotes(layers.back().name)));
  }
  return layers;
}

}  // namespace

void NetworkFiles::load(JsonNode& tree, Problems& problems) {
  JsonNode* network = tree.find("network");
  if (network != nullptr && network->is(JsonKind::kString)) *network = read(JsonNode(*network), problems);
}

JsonNode NetworkFiles::read(const JsonNode& name, Problems& problems) {
  JsonNode nothing;
  nothing.location = name.location;
  if (name.text.empty() || name.text.find('\0') != std::string::npos) {
    problems.add_value(name, "the name of a network file, or an object");
    return nothing;
  }
  const auto cached = cache_.find(name.text);
  if (cached != cache_.end()) return cached->second;
  fs::path path = directory_ / name.text;
  std::error_code ignored;
  if (name.location->line == 0 && !fs::exists(path, ignored)) {  // From the command line.
    if (fs::exists(name.text, ignored)) path = name.text;
  }
  path = path.lexically_normal();
  try {
    JsonNode content = parse_json(read_file(path), path.string());
    if (!content.is(JsonKind::kObject)) {
      problems.add_value(content, "an object: a network with \"layers\"");
    } else {
      if (content.find("name") == nullptr) {
        content.members.insert(content.members.begin(),
                               {"name", content.location, from_json(path.stem().string(), content.location)});
      }
      return cache_.emplace(name.text, std::move(content)).first->second;
    }
  } catch (const DataError& error) {
    const fs::path nearest = nearest_file(path).filename();
    const fs::path suggested = fs::path(name.text).parent_path() / nearest;
    problems.add(
        *name.location,
        fmt::format("got {}, want a network file; {}{}", describe(name), error.what(),
                    nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", suggested.string())));
  } catch (const ConfigError& error) {
    problems.add_message(error.what());
  }
  return nothing;
}

Arguments read_arguments(const JsonNode& object, const NamedType& type,
                         std::span<const std::string> reserved_keys, Problems& problems) {
  Arguments arguments;
  std::vector<std::string> names;
  for (const ArgumentType& argument : type.arguments) names.push_back(argument.name);
  for (const std::string& key : reserved_keys) {
    if (key != "name" && key != "type") names.push_back(key);
  }
  for (const JsonMember& member : object.members) {
    if (std::find(reserved_keys.begin(), reserved_keys.end(), member.key) != reserved_keys.end()) continue;
    const ArgumentType* argument = find_argument(type, member.key);
    if (argument == nullptr) {
      problems.add(
          *member.key_location,
          fmt::format("{} has no argument {}, {}{}", type.name, in_quotes(member.key),
                      names.empty() ? "it takes none" : fmt::format("allowed: {}", fmt::join(names, ", ")),
                      suggestion(member.key, names)));
    } else if (auto value = read_value(member.value, *argument, problems)) {
      arguments[argument->name] = std::move(*value);
    }
  }
  for (const ArgumentType& argument : type.arguments) {
    if (argument.default_value || argument.optional || object.find(argument.name) != nullptr) continue;
    problems.add(*object.location,
                 fmt::format("{} needs {}, {}", type.name, in_quotes(argument.name), allowed_text(argument)));
  }
  return arguments;
}

NetworkSpec read_network(const JsonNode& node, Problems& problems) {
  static const std::string keys[] = {"name", "layers"};
  NetworkSpec network{"network", {}};
  if (!node.is(JsonKind::kObject)) {
    problems.add_value(node, "the name of a network file, or an object with \"layers\"");
    return network;
  }
  for (const JsonMember& member : node.members) {
    if (member.key[0] == '$') continue;  // "$schema" is for editors.
    if (member.key != "name" && member.key != "layers") problems.add_unknown_key(member, keys);
  }
  if (const JsonNode* name = node.find("name")) {
    if (!name->is(JsonKind::kString) || name->text.empty()) problems.add_value(*name, "a name, a string");
    if (!name->text.empty()) network.name = name->text;
  }
  const JsonNode* layers = node.find("layers");
  if (layers == nullptr) {
    problems.add(*node.location, "a network needs \"layers\", a list of objects");
    return network;
  }
  if (!layers->is(JsonKind::kArray) || layers->elements.empty()) {
    problems.add_value(*layers, "a list with at least one layer");
    return network;
  }
  network.layers = read_layers(*layers, problems);
  return network;
}

}  // namespace sweep
