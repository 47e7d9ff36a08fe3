#include "runmanager/tensorboard/network_graph.h"

#include <algorithm>
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

// PyTorch's names, in the order of LossOptions::Kind.
constexpr const char* kLossClasses[] = {"CrossEntropyLoss", "MSELoss", "L1Loss", "SmoothL1Loss",
                                        "BCEWithLogitsLoss"};

GraphNode loss_node(const LossOptions& loss) {
  GraphNode node;
  node.op = kLossClasses[static_cast<std::size_t>(loss.kind)];
  for (const auto& [key, value] : arguments_of(loss)) node.attributes.emplace_back(key, attribute(value));
  node.attributes.emplace_back("reduction", std::string("mean"));
  node.output_shapes = {GraphShape{}};
  return node;
}

std::string graph_device(const Device& device) {
  return (device.type == DeviceType::kCuda ? "/device:GPU:" : "/device:CPU:") + std::to_string(device.index);
}

// Calls use(node, layer) for all nodes in their order. `layer`: whose operation the node is, or that has the
// parameter; kNetworkInput: of none.
template <class Use>
void for_each_node(const Network& network, const Device& device, const LossOptions& loss, const Use& use) {
  const auto add = [&, device_name = graph_device(device)](GraphNode node, std::size_t layer) {
    node.device = device_name;
    use(std::move(node), layer);
  };
  const OuterNames outer(network);
  GraphNode images, labels;
  images.name = outer.images;
  labels.name = outer.labels;
  images.op = labels.op = "Input";
  images.output_shapes = {batch_of(network.input())};
  labels.output_shapes = {{-1}};
  add(std::move(images), kNetworkInput);
  const std::vector<std::string> names = operation_node_names(network);
  const auto source = [&](std::size_t layer) { return layer == kNetworkInput ? outer.images : names[layer]; };
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const Layer& layer = network.layers()[i];
    GraphNode operation;
    operation.op = torch_class(layer.type);
    operation.name = names[i];
    for (const std::size_t input : layer.inputs) operation.inputs.push_back(source(input));
    operation.output_shapes = {batch_of(layer.output)};
    for (const auto& [key, value] : layer.arguments) operation.attributes.emplace_back(key, attribute(value));
    std::int64_t parameters = 0;
    const auto array_node = [&](const Parameter& array, const char* op, const char* fallback) {
      GraphNode node;
      node.name = scope_name(layer) + "/" + node_name(leaf_name(array.name), fallback);
      node.op = op;
      node.attributes = {{"name", array.name}};
      node.output_shapes = {array.shape};
      operation.inputs.push_back(node.name);
      return node;
    };
    for (const std::size_t index : layer.parameters) {
      const auto count = static_cast<std::int64_t>(network.parameters()[index].count);
      GraphNode node = array_node(network.parameters()[index], "Parameter", "parameter");
      node.attributes.emplace_back("parameters", count);
      parameters += count;
      add(std::move(node), i);
    }
    for (const std::size_t index : layer.buffers)
      add(array_node(network.buffers()[index], "Buffer", "buffer"), i);
    operation.attributes.emplace_back("input_shape", batch_of(layer.input));
    operation.attributes.emplace_back("parameters", parameters);
    add(std::move(operation), i);
  }
  add(std::move(labels), kNetworkInput);
  GraphNode end = loss_node(loss);
  end.name = outer.loss;
  end.inputs = {source(network.layers().size() - 1), outer.labels};
  add(std::move(end), kNetworkInput);
}

// What a layer took, and whether it was measured together with others.
struct LayerShare {
  double seconds = 0;
  std::size_t bytes = 0;
};

// An op of an engine may do several layers in one pass, and then the first of them has the time of all:
// shares it among them. A layer without multiplications counts as one operation per element of its output.
// `measured`: of each layer; null if it was not.
std::vector<LayerShare> shares_of(const Network& network, const std::vector<const LayerProfile*>& measured,
                                  std::int64_t samples) {
  const auto layers = network.layers();
  const auto work_of = [&](std::size_t i) {
    return network.forward_flops(layers[i]) + static_cast<double>(element_count(layers[i].output));
  };
  const auto is_shared = [&](std::size_t i) {
    return measured[i] != nullptr && measured[i]->seconds == 0 && measured[i]->bytes == 0;
  };
  std::vector<LayerShare> shares(layers.size());
  for (std::size_t first = 0, last = 0; first < layers.size(); first = last) {
    double work = work_of(first);
    for (last = first + 1; last < layers.size() && is_shared(last); ++last) work += work_of(last);
    for (std::size_t i = first; i < last; ++i) {
      if (measured[first] != nullptr) shares[i].seconds = measured[first]->seconds * work_of(i) / work;
      shares[i].bytes = element_count(layers[i].output) * sizeof(float) * static_cast<std::size_t>(samples);
    }
    if (measured[first] != nullptr && measured[first]->bytes > 0)
      shares[first].bytes = measured[first]->bytes;
  }
  return shares;
}

}  // namespace

bool shares_times(std::span<const LayerProfile> layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerProfile& layer) { return layer.seconds == 0 && layer.bytes == 0; });
}

tbwriter::Graph network_graph(const Network& network, const Device& device, const LossOptions& loss) {
  tbwriter::Graph graph;
  for_each_node(network, device, loss,
                [&](GraphNode node, std::size_t) { graph.nodes.push_back(std::move(node)); });
  return graph;
}

std::vector<tbwriter::NodeProfile> network_profile(const Network& network, const Device& device,
                                                   std::span<const LayerProfile> layers, std::int64_t samples,
                                                   std::int64_t start_micros) {
  std::vector<tbwriter::NodeProfile> nodes;
  const std::vector<std::string> names = operation_node_names(network);
  std::unordered_map<std::string_view, const LayerProfile*> profiles;
  for (const LayerProfile& profile : layers) profiles.emplace(profile.layer, &profile);
  std::vector<const LayerProfile*> measured;
  for (const Layer& layer : network.layers()) measured.push_back(profiles[layer.name]);
  const std::vector<LayerShare> shares = shares_of(network, measured, samples);
  for_each_node(network, device, {}, [&](GraphNode node, std::size_t layer) {
    if (layer != kNetworkInput && measured[layer] == nullptr) return;
    const bool is_operation = layer != kNetworkInput && node.name == names[layer];
    GraphShape shape = std::move(node.output_shapes[0]);
    std::ranges::replace(shape, -1, samples);
    if (shape.empty()) shape = {1};
    // Nodes without any time or memory would be drawn as unused parts of the network.
    const std::size_t bytes = is_operation ? shares[layer].bytes : element_count(shape) * sizeof(float);
    const std::int64_t micros = is_operation ? std::max(1LL, std::llround(shares[layer].seconds * 1e6)) : 0;
    nodes.push_back({.node = std::move(node.name),
                     .device = std::move(node.device),
                     .start_micros = start_micros,
                     .duration_micros = micros,
                     .memory_bytes = static_cast<std::int64_t>(bytes),
                     .output_shapes = {std::move(shape)}});
    start_micros += micros;
  });
  return nodes;
}

}  // namespace sweep
