// The key "network", whose layers are checked against the table of layer types.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/suggest.h"
#include "core/network/layers.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxLayerNameLength = 64;

// Layer names become parts of parameter names, graph nodes and dotted keys, so no dots or slashes.
bool is_layer_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxLayerNameLength &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
         });
}

void check_layer_name(const JsonView& node, std::size_t index, Problems& problems) {
  if (!node->is_string() || !is_layer_name(node.text())) {
    problems.add_value(
        node, fmt::format("a name of letters, digits, _ and -, at most {} of them", kMaxLayerNameLength));
  } else if (node.text().find_first_not_of("0123456789") == std::string::npos &&
             node.text() != std::to_string(index)) {
    problems.add(node,
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

Json complete_layers(const JsonView& list, Problems& problems);

// Completes the "layers" of a network or a layer into `json`. `needed`: what is said if there are none.
void complete_own_layers(const JsonView& node, const std::string& needed, Json& json, Problems& problems) {
  const JsonView layers = node.find("layers");
  if (!layers) {
    problems.add(node, needed);
  } else if (!layers->is_array() || layers->empty()) {
    problems.add_value(layers, "a list with at least one layer");
  } else {
    json["layers"] = complete_layers(layers, problems);
  }
}

// Completes the layers inside a sequential or residual.
void complete_inner_layers(const JsonView& node, const std::string& type, Json& layer, Problems& problems) {
  complete_own_layers(node, fmt::format("{} needs \"layers\", a list of layers", type), layer, problems);
  const JsonView shortcut = type == "residual" ? node.find("shortcut") : JsonView();
  if (!shortcut) return;
  if (!shortcut->is_array()) return problems.add_value(shortcut, "a list of layers");
  if (!shortcut->empty()) layer["shortcut"] = complete_layers(shortcut, problems);
  if (!layer.contains("layers")) return;
  for (std::size_t i = 0; i < layer["layers"].size(); ++i) {
    if (layer["layers"][i]["name"] != "shortcut") continue;
    problems.add(node.find("layers").at(i),
                 "a layer is called \"shortcut\", which is what the residual's shortcut is called, want "
                 "another name");
  }
}

Json complete_layer(const JsonView& node, std::size_t index, Problems& problems) {
  Json layer = {{"name", std::to_string(index)}};  // As in torch.nn.Sequential.
  if (!node->is_object()) {
    problems.add_value(node, "an object: a layer with a \"type\"");
    return layer;
  }
  if (const JsonView name = node.find("name")) {
    check_layer_name(name, index, problems);
    layer["name"] = name.text();
  }
  const std::vector<std::string> types = type_names(layer_types());
  const JsonView type_node = node.find("type");
  if (!type_node) {
    problems.add(node, fmt::format("a layer needs a \"type\": {}", listed(types)));
    return layer;
  }
  const NamedType* type = find_type(layer_types(), type_node.text());
  if (type == nullptr) {
    problems.add_value(type_node, listed(types),
                       type_node->is_string() ? nearest_name(type_node.text(), types) : "");
    return layer;
  }
  layer["type"] = type->name;
  complete_arguments(node, *type, reserved_keys(type->name), layer, problems);
  // As in make_layer(). Written down, so that a run is the same one whether its file has it or not.
  if (find_argument(*type, "stride") != nullptr && !layer.contains("stride") && layer.contains("kernel_size"))
    layer["stride"] = layer["kernel_size"];
  if (has_inner_layers(type->name)) complete_inner_layers(node, type->name, layer, problems);
  return layer;
}

Json complete_layers(const JsonView& list, Problems& problems) {
  Json layers = Json::array();
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->size(); ++i) {
    layers.push_back(complete_layer(list.at(i), i, problems));
    const std::string name = layers.back()["name"];
    if (names.insert(name).second) continue;
    problems.add(list.at(i),
                 fmt::format("a second layer is called {}, want different names", in_quotes(name)));
  }
  return layers;
}

Json complete_network_key(const Setting&, const Given& given) {
  if (!given.value) {
    given.problems.add(given.object, "\"network\" is missing, want the name of a network file, or an object");
  } else if (!given.value->is_null()) {
    return complete_network(given.value, given.problems);
  } else if (given.problems.empty()) {
    // Null also replaces a value whose file could not be read, which was reported.
    given.problems.add_value(given.value, "the name of a network file, or an object");
  }
  return nullptr;
}

}  // namespace

Json complete_network(const JsonView& node, Problems& problems) {
  static const std::string keys[] = {"name", "layers"};
  Json network = {{"name", "network"}, {"layers", Json::array()}};
  if (!node->is_object()) {
    problems.add_value(node,
                       "the name of a network file, or an object with \"layers\"" + hint_of_values(node));
    return network;
  }
  for (const JsonView& member : node.children()) {
    if (member.key()[0] == '$') continue;  // "$schema" is for editors.
    if (member.key() != "name" && member.key() != "layers") problems.add_unknown_key(member, keys);
  }
  if (const JsonView name = node.find("name")) {
    if (!name->is_string() || name.text().empty()) problems.add_value(name, "a name, a string");
    if (!name.text().empty()) network["name"] = name.text();
  }
  complete_own_layers(node, "a network needs \"layers\", a list of objects", network, problems);
  return network;
}

Setting rows::network() {
  Setting row = custom(
      "network", {{"anyOf", Json::array({{{"type", "string"}, {"minLength", 1}}, definition("network")})}},
      "a network file, relative to this one, or an object with layers");
  row.has_parts = true;
  return std::move(row).completed_by(complete_network_key);
}

}  // namespace sweep
