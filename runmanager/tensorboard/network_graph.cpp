#include "runmanager/tensorboard/network_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/network/network.h"

namespace sweep {
namespace {

using tbwriter::GraphAttribute;
using tbwriter::GraphNode;
using tbwriter::GraphShape;

// In node names, TensorBoard takes "/" as the separator of scopes, and "^" and ":" as syntax of inputs.
std::string node_name(std::string text, const char* fallback) {
  for (char& c : text) {
    if (c == '/' || c == '^' || c == ':' || static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  return text.empty() ? fallback : text;
}

GraphShape batch_of(const Shape& sample, std::int64_t samples = -1) {
  GraphShape shape = {samples};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

GraphAttribute attribute(const ArgumentValue& value) {
  return std::visit(
      [](const auto& v) -> GraphAttribute {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          return v;
        } else if constexpr (requires { v.size(); }) {
          return std::vector(v.begin(), v.end());
        } else {
          return v;
        }
      },
      value);
}

// "conv1.weight" is "weight" inside the scope of conv1.
std::string leaf_name(const std::string& parameter) { return parameter.substr(parameter.rfind('.') + 1); }

// "block1.conv1" gets the scope conv1 inside the scope block1. There is no scope around all layers:
// TensorBoard would open with a single box.
std::string scope_name(const Layer& layer) {
  std::string scope;
  for (std::size_t start = 0; start <= layer.name.size();) {
    const std::size_t dot = std::min(layer.name.find('.', start), layer.name.size());
    if (start > 0) scope += "/";
    scope += node_name(layer.name.substr(start, dot - start), "layer");
    start = dot + 1;
  }
  return scope;
}

// The names of the nodes next to the layers; they must differ from the scopes of layers.
struct OuterNames {
  std::string images = "images", labels = "labels", loss = "loss";

  explicit OuterNames(const Network& network) {
    std::unordered_set<std::string> scopes;
    for (const Layer& layer : network.layers()) {
      const std::string scope = scope_name(layer);
      scopes.insert(scope.substr(0, scope.find('/')));
    }
    for (std::string* name : {&images, &labels, &loss}) {
      while (scopes.contains(*name)) *name += "_";
    }
  }
};

// The names of the nodes of operations, by layer.
std::vector<std::string> operation_node_names(const Network& network) {
  std::unordered_set<std::string> scopes;  // "block1.conv1" and "block1"
  for (const Layer& layer : network.layers()) {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = layer.name.find('.', end + 1);
      scopes.insert(layer.name.substr(0, end));
    }
  }
  std::vector<std::string> names;
  for (const Layer& layer : network.layers()) {
    std::string name(torch_class(layer.type));
    // The sum of a residual is next to the scopes of its layers, and its name must differ from theirs.
    while (scopes.contains(layer.name + "." + name)) name += "_";
    names.push_back(scope_name(layer) + "/" + name);
  }
  return names;
}

// PyTorch's name.
const char* loss_class(LossOptions::Kind kind) {
  switch (kind) {
    case LossOptions::Kind::kCrossEntropy:
      break;
    case LossOptions::Kind::kMse:
      return "MSELoss";
    case LossOptions::Kind::kL1:
      return "L1Loss";
    case LossOptions::Kind::kSmoothL1:
      return "SmoothL1Loss";
    case LossOptions::Kind::kBceWithLogits:
      return "BCEWithLogitsLoss";
  }
  return "CrossEntropyLoss";
}

GraphNode loss_node(const LossOptions& loss) {
  GraphNode node;
  node.op = loss_class(loss.kind);
  for (const auto& [key, value] : arguments_of(loss)) node.attributes.emplace_back(key, attribute(value));
  node.attributes.emplace_back("reduction", std::string("mean"));
  node.output_shapes = {GraphShape{}};
  return node;
}

// Calls use(node, array) for the node of each parameter and buffer of a layer.
template <class Use>
void for_each_array(const Network& network, const Layer& layer, const std::string& device, Use use) {
  const auto add = [&](const Parameter& array, const char* op, const char* fallback) {
    GraphNode node{.name = scope_name(layer) + "/" + node_name(leaf_name(array.name), fallback),
                   .op = op,
                   .inputs = {},
                   .device = device,
                   .attributes = {{"name", array.name}},
                   .output_shapes = {array.shape}};
    use(std::move(node), array);
  };
  for (const std::size_t index : layer.parameters) add(network.parameters()[index], "Parameter", "parameter");
  for (const std::size_t index : layer.buffers) add(network.buffers()[index], "Buffer", "buffer");
}

}  // namespace

std::string graph_device(const Device& device) {
  return (device.type == DeviceType::kCuda ? "/device:GPU:" : "/device:CPU:") + std::to_string(device.index);
}

tbwriter::Graph network_graph(const Network& network, const Device& device, const LossOptions& loss) {
  const std::string device_name = graph_device(device);
  tbwriter::Graph graph;
  const auto add = [&graph](GraphNode node) { graph.nodes.push_back(std::move(node)); };

  const OuterNames outer(network);
  add({.name = outer.images,
       .op = "Input",
       .inputs = {},
       .device = device_name,
       .output_shapes = {batch_of(network.input())}});
  const std::vector<std::string> names = operation_node_names(network);
  const auto source = [&](std::size_t layer) { return layer == kNetworkInput ? outer.images : names[layer]; };
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const Layer& layer = network.layers()[i];
    GraphNode operation;
    operation.op = torch_class(layer.type);
    operation.name = names[i];
    operation.device = device_name;
    for (const std::size_t input : layer.inputs) operation.inputs.push_back(source(input));
    operation.output_shapes = {batch_of(layer.output)};
    for (const auto& [key, value] : layer.arguments) operation.attributes.emplace_back(key, attribute(value));
    std::int64_t parameters = 0;
    for_each_array(network, layer, device_name, [&](GraphNode node, const Parameter& array) {
      if (node.op == "Parameter") {
        node.attributes.emplace_back("parameters", static_cast<std::int64_t>(array.count));
        parameters += static_cast<std::int64_t>(array.count);
      }
      operation.inputs.push_back(node.name);
      add(std::move(node));
    });
    operation.attributes.emplace_back("input_shape", batch_of(layer.input));
    operation.attributes.emplace_back("parameters", parameters);
    add(std::move(operation));
  }
  add({.name = outer.labels, .op = "Input", .inputs = {}, .device = device_name, .output_shapes = {{-1}}});
  GraphNode end = loss_node(loss);
  end.name = outer.loss;
  end.inputs = {source(network.layers().size() - 1), outer.labels};
  end.device = device_name;
  add(std::move(end));
  return graph;
}

namespace {

// What a layer took, and whether it was measured together with others.
struct LayerShare {
  double seconds = 0;
  std::size_t bytes = 0;
};

// An op of an engine may do several layers in one pass, and then the first of them has the time of all:
// shares it among them. A layer without multiplications counts as one operation per element of its output.
std::vector<LayerShare> shares_of(const Network& network,
                                  const std::unordered_map<std::string_view, const LayerProfile*>& profiles,
                                  std::int64_t samples) {
  const auto layers = network.layers();
  const auto elements = [](const Layer& layer) { return element_count(layer.output); };
  std::vector<LayerShare> shares(layers.size());
  for (std::size_t first = 0; first < layers.size();) {
    const auto profile_of = [&](std::size_t layer) {
      const auto found = profiles.find(layers[layer].name);
      return found == profiles.end() ? nullptr : found->second;
    };
    const LayerProfile* measured = profile_of(first);
    std::size_t last = first + 1;
    while (last < layers.size() && profile_of(last) != nullptr && profile_of(last)->seconds == 0 &&
           profile_of(last)->bytes == 0)
      ++last;
    double work = 0;
    for (std::size_t i = first; i < last; ++i)
      work += network.forward_flops(layers[i]) + static_cast<double>(elements(layers[i]));
    for (std::size_t i = first; i < last; ++i) {
      const double part = network.forward_flops(layers[i]) + static_cast<double>(elements(layers[i]));
      if (measured != nullptr) shares[i].seconds = measured->seconds * part / work;
      shares[i].bytes = elements(layers[i]) * sizeof(float) * static_cast<std::size_t>(samples);
    }
    if (measured != nullptr && measured->bytes > 0) shares[first].bytes = measured->bytes;
    first = last;
  }
  return shares;
}

}  // namespace

bool shares_times(std::span<const LayerProfile> layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerProfile& layer) { return layer.seconds == 0 && layer.bytes == 0; });
}

std::vector<tbwriter::NodeProfile> network_profile(const Network& network, const Device& device,
                                                   std::span<const LayerProfile> layers, std::int64_t samples,
                                                   std::int64_t start_micros) {
  std::vector<tbwriter::NodeProfile> nodes;
  const std::string device_name = graph_device(device);
  const auto add = [&](std::string node, std::int64_t micros, std::size_t bytes, GraphShape shape) {
    nodes.push_back({.node = std::move(node),
                     .device = device_name,
                     .start_micros = start_micros,
                     .duration_micros = micros,
                     .memory_bytes = static_cast<std::int64_t>(bytes),
                     .output_shapes = {std::move(shape)}});
    start_micros += micros;
  };
  // Nodes without any time or memory would be drawn as unused parts of the network.
  const OuterNames outer(network);
  const auto count = static_cast<std::size_t>(samples);
  add(outer.images, 0, count * element_count(network.input()) * sizeof(float),
      batch_of(network.input(), samples));
  add(outer.labels, 0, count * sizeof(std::int32_t), {samples});
  add(outer.loss, 0, sizeof(float), {1});

  const std::vector<std::string> names = operation_node_names(network);
  std::unordered_map<std::string_view, const LayerProfile*> profiles;
  for (const LayerProfile& profile : layers) profiles.emplace(profile.layer, &profile);
  const std::vector<LayerShare> shares = shares_of(network, profiles, samples);
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const Layer& layer = network.layers()[i];
    if (!profiles.contains(layer.name)) continue;
    for_each_array(network, layer, device_name, [&](GraphNode node, const Parameter& array) {
      add(std::move(node.name), 0, array.count * sizeof(float), array.shape);
    });
    const std::int64_t micros = std::max(1LL, std::llround(shares[i].seconds * 1e6));
    add(names[i], micros, shares[i].bytes, batch_of(layer.output, samples));
  }
  return nodes;
}

}  // namespace sweep
