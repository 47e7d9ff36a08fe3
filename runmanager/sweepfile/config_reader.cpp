// Runs as their settings have them; and "network", whose file is found and read, and whose layers are checked
// against the table of layer types.
#include "runmanager/sweepfile/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
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

// The run of a person's own program, with empty "params".
RunConfig read_command_config(const JsonView& tree, Problems& problems) {
  RunConfig config;
  Json resolved = Json::object();
  for (const Setting& setting : command_settings()) {
    const JsonView given = tree.find(setting.name);
    if (given && setting.name != "params") resolved[setting.name] = *given;
  }
  resolved["params"] = Json::object();
  resolved["repeat"] = 0;
  config.resolved = std::move(resolved);
  const Json json = complete_object(tree, command_settings(), {}, problems);
  if (!problems.empty()) return config;
  const Json& timeout = json.at("timeout");
  CommandSpec spec{.words = json.at("command"),
                   .shell = json.at("shell"),
                   .cwd = json.value("cwd", ""),
                   .inputs = json.value("inputs", std::vector<std::string>()),
                   .metrics = {},
                   .dashes = json.at("flags") == "dashes",
                   .timeout = timeout.at("run"),
                   .silence = timeout.at("silence"),
                   .grace = timeout.at("grace"),
                   .gpus = json.at("gpus"),
                   .runs_per_gpu = json.at("runs_per_gpu")};
  const Json patterns = json.value("metrics", Json::object());
  for (const auto& [metric, pattern] : patterns.items()) spec.metrics.emplace_back(metric, pattern);
  read_setting("stop", json.value("stop", Json()))(config);
  config.epochs = json.at("reports");
  // What a task on a cluster has to ask for.
  config.device = spec.gpus > 0 ? "cuda" : "cpu";
  config.parallel.data = std::max(1, spec.gpus);
  config.log.graph = config.log.histograms = config.log.predictions = config.log.layout = false;
  config.log.images = 0;
  config.command = std::make_shared<const CommandSpec>(std::move(spec));
  return config;
}

}  // namespace

fs::path nearest_file(const fs::path& missing) {
  constexpr std::size_t kMaxFiles = 1000;  // Larger directories take too long for a guess.
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(directory_of(missing), failed), end;
       !failed && it != end && names.size() < kMaxFiles; it.increment(failed)) {
    const fs::path name = it->path().filename();  // `missing` itself if it is a link to nothing
    if (name.extension() == ".json" && name != missing.filename()) names.push_back(name.string());
  }
  std::sort(names.begin(),
            names.end());  // Directories have no order; the suggestion must not depend on it.
  const std::string nearest = nearest_name(missing.filename().string(), names);
  return nearest.empty() ? fs::path() : missing.parent_path() / nearest;
}

void NetworkFiles::load(JsonDocument& tree, Problems& problems) {
  const JsonView name = JsonView(tree).find("network");
  if (!name->is_string()) return;
  Json& network = tree.json["network"];
  if (const JsonDocument* content = read(name, problems))
    tree.set(network, {"network"}, *content);
  else
    network = nullptr;
}

const JsonDocument* NetworkFiles::read(const JsonView& name, Problems& problems) {
  if (name.text().empty() || name.text().find('\0') != std::string::npos) {
    problems.add_value(name, "the name of a network file, or an object");
    return nullptr;
  }
  const fs::path path = located(name.text(), name.place(), directory_).lexically_normal();
  if (const auto cached = cache_.find(path); cached != cache_.end()) return &cached->second;
  try {
    JsonDocument content = parse_json(read_file(path), path.string());
    if (!content.json.is_object()) {
      problems.add_value(content, "an object: a network with \"layers\"");
      return nullptr;
    }
    Json named = {{"name", path.stem().string()}};
    named.update(content.json);
    content.json = std::move(named);
    return &cache_.emplace(path, std::move(content)).first->second;
  } catch (const DataError& error) {
    const fs::path nearest = nearest_file(path).filename();
    const std::string suggested = (fs::path(name.text()).parent_path() / nearest).string();
    const bool is_other = !nearest.empty() && suggested != name.text();
    problems.add(name, fmt::format("got {}, want a network file; {}{}", describe(name), error.what(),
                                   did_you_mean(is_other ? suggested : "")));
  } catch (const ConfigError& error) {
    problems.add_message(error.what());
  }
  return nullptr;
}

Json complete_network(const JsonView& node, Problems& problems) {
  static const std::string keys[] = {"name", "layers"};
  Json network = {{"name", "network"}, {"layers", Json::array()}};
  if (!node->is_object()) {
    problems.add_value(node, "the name of a network file, or an object with \"layers\"");
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

Json complete_network(const Setting&, const Given& given) {
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

RunConfig read_run_config(const JsonView& tree, const ReadContext& context, Problems& problems) {
  if (is_command_file(tree)) return read_command_config(tree, problems);
  check_keys(tree, top_level_settings(), problems);
  RunConfig config;
  const Json none = Json::object();
  for (const Setting& setting : top_level_settings()) {
    if (!setting.sweepable) continue;  // not of a run
    config.resolved.set(
        setting.name, std::make_shared<const Json>(
                          complete_value(setting, {tree.find(setting.name), tree, none, context, problems})));
  }
  config.resolved.set("repeat", std::make_shared<const Json>(0));  // no key of the file, which has "repeats"
  if (!problems.empty()) return config;  // What is wrong cannot be read, and is never asked for.
  for (const Setting& setting : top_level_settings()) {
    const auto value = config.resolved.find(setting.name);
    if (setting.sweepable) read_setting(setting.name, value != nullptr ? *value : Json())(config);
  }
  return config;
}

}  // namespace sweep
