#include "core/kernels/cuda/fused_nodes.h"

#include <algorithm>

#include "core/base/error.h"

namespace sweep::cuda {
namespace {

constexpr std::size_t kInputValue = 0;  // the network's input, which needs no gradient

bool is_weighted(const Layer& layer) { return layer.is<layers::Conv2d>() || layer.is<layers::Linear>(); }

class Fusion {
 public:
  Fusion(const Network& network, const StageLayers& stages) : network_(network), stages_(stages) {}

  FusedNodes run() {
    make_nodes();
    if (fused_.nodes.empty()) throw ConfigError("network \"" + network_.name() + "\" has nothing to train");
    describe_values();
    return std::move(fused_);
  }

 private:
  // An activation after a linear layer is where that is, because the two may be one op.
  std::size_t stage_of(std::size_t layer) const {
    const auto layers = network_.layers();
    const std::size_t before = layers[layer].inputs[0];
    if (before != kNetworkInput && before + 1 == layer && layers[before].is<layers::Linear>() &&
        layers[layer].is<layers::Activated>())
      return stages_.of_layer(before);
    return stages_.of_layer(layer);
  }

  void make_nodes() {
    const auto layers = network_.layers();
    std::vector<int> consumer_count(layers.size());
    for (const Layer& layer : layers) {
      for (const std::size_t input : layer.inputs) {
        if (input != kNetworkInput) ++consumer_count[input];
      }
    }
    fused_.values.push_back({.elements = element_count(network_.input())});
    std::vector<std::size_t> value_of(layers.size());
    const auto value = [&](std::size_t layer) {
      return layer == kNetworkInput ? kInputValue : value_of[layer];
    };
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const Layer& layer = layers[i];
      if (layer.is<layers::Flatten>()) {  // [channels][y][x] and [features] are the same array
        value_of[i] = value(layer.inputs[0]);
        continue;
      }
      Node node{.layer = &layer, .stage = stage_of(i), .output = fused_.values.size()};
      for (const std::size_t input : layer.inputs) node.inputs.push_back(value(input));
      value_of[i] = node.output;
      if (is_weighted(layer) && i + 1 < layers.size() && layers[i + 1].is_relu() &&
          layers[i + 1].inputs[0] == i && consumer_count[i] == 1) {
        node.relu = true;
        value_of[++i] = node.output;
      }
      const Shape* output = &layer.output;
      if (node.relu && i + 1 < layers.size() && layers[i + 1].inputs[0] == i && consumer_count[i] == 1) {
        if (const auto shape = ConvPoolOp::shape_of(layer, layers[i + 1], node.inputs[0] != kInputValue)) {
          node.conv_pools = {{&layer, *shape}};
          value_of[++i] = node.output;
          output = &layers[i].output;
        }
      }
      const std::size_t before = layer.inputs[0];
      if (!node.conv_pools.empty() && before != kNetworkInput && consumer_count[before] == 1 &&
          fuse_with_last(node)) {
        value_of[i] = fused_.nodes.back().output;
        fused_.values.back().elements = element_count(*output);
        continue;
      }
      fused_.values.push_back(
          {.elements = element_count(*output), .producer = static_cast<int>(fused_.nodes.size())});
      fused_.nodes.push_back(std::move(node));
    }
    fused_.output = value_of.back();
  }

  // Fuses the convolution of `node` into the last node, if that produces its input and the kernel has room.
  // Two convolutions of different stages are two ops, which have the same bits.
  bool fuse_with_last(const Node& node) {
    std::vector<Node>& nodes = fused_.nodes;
    if (nodes.empty() || nodes.back().conv_pools.empty() || nodes.back().output != node.inputs[0] ||
        nodes.back().stage != node.stage)
      return false;
    std::vector<ConvPoolLayers> both = nodes.back().conv_pools;
    both.push_back(node.conv_pools[0]);
    if (!ConvPoolOp::fits(both, nodes.back().inputs[0] != kInputValue)) return false;
    nodes.back().conv_pools = std::move(both);
    return true;
  }

  void describe_values() {
    for (std::size_t n = 0; n < fused_.nodes.size(); ++n) {
      const Node& node = fused_.nodes[n];
      const bool activation = node.layer->is<layers::Activated>();
      const bool saves_input =
          is_weighted(*node.layer) || node.layer->is<layers::BatchNorm2d>() || activation;
      Value& output = fused_.values[node.output];
      output.saved_by_producer = (node.relu && node.conv_pools.empty()) || activation;
      output.needs_gradient = !node.layer->parameters.empty();
      for (const std::size_t input : node.inputs) {
        fused_.values[input].consumers.push_back(n);
        if (saves_input) fused_.values[input].savers.push_back(n);
        output.needs_gradient = output.needs_gradient || fused_.values[input].needs_gradient;
      }
    }
  }

  const Network& network_;
  const StageLayers& stages_;
  FusedNodes fused_;
};

}  // namespace

std::size_t StageLayers::of_layer(std::size_t layer) const {
  const auto next = std::upper_bound(first_layers.begin(), first_layers.end(), layer);
  return static_cast<std::size_t>(next - first_layers.begin()) - 1;
}

FusedNodes fuse_layers(const Network& network, const StageLayers& stages) {
  return Fusion(network, stages).run();
}

std::vector<bool> stages_with_nodes(const Network& network, const std::vector<std::size_t>& first_layers) {
  std::vector<bool> used(first_layers.size());
  for (const Node& node : fuse_layers(network, {.first_layers = first_layers}).nodes) used[node.stage] = true;
  return used;
}

}  // namespace sweep::cuda
