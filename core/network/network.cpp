#include "core/network/network.h"

#include <set>

#include "core/base/error.h"

namespace sweep {
namespace {

using Pair = std::array<std::int64_t, 2>;

[[noreturn]] void throw_shape(const Layer& layer, const std::string& problem) {
  throw ShapeError("layer \"" + layer.name + "\" (" + layer.type + "): " + problem);
}

void need_image(const Layer& layer) {
  if (layer.input.size() == 3) return;
  throw_shape(layer, "needs an input of shape [channels, height, width], but gets " + to_string(layer.input));
}

// Extent of a sliding window's output; the same formula for convolution and pooling (PyTorch, ceil_mode
// false).
Shape window_output(const Layer& layer, std::int64_t channels, Pair kernel, Pair stride, Pair padding) {
  Shape output{channels, 0, 0};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t room = layer.input[d + 1] + 2 * padding[d] - kernel[d];
    if (room < 0) {
      throw_shape(layer, "kernel_size " + to_string(ArgumentValue(kernel)) + " is larger than its input " +
                             to_string(layer.input) + " with padding " + to_string(ArgumentValue(padding)));
    }
    output[d + 1] = room / stride[d] + 1;
  }
  return output;
}

Pair pair_of(const Layer& layer, const char* name) { return std::get<Pair>(layer.arguments.at(name)); }

std::int64_t integer_of(const Layer& layer, const char* name) {
  return std::get<std::int64_t>(layer.arguments.at(name));
}

void infer_pool(Layer& layer) {
  need_image(layer);
  const Pair kernel = pair_of(layer, "kernel_size");
  layer.arguments.try_emplace("stride", kernel);
  const Pair padding = pair_of(layer, "padding");
  for (std::size_t d = 0; d < 2; ++d) {
    if (2 * padding[d] > kernel[d]) throw_shape(layer, "padding must be at most half of kernel_size");
  }
  layer.output = window_output(layer, layer.input[0], kernel, pair_of(layer, "stride"), padding);
}

void infer_linear(Layer& layer) {
  if (layer.input.size() != 1) {
    throw_shape(layer, "needs an input of shape [features], but gets " + to_string(layer.input) +
                           "; put a flatten layer in front of it");
  }
  layer.output = {integer_of(layer, "out_features")};
}

// Sets the output shape from the input shape and the arguments.
void infer_output(Layer& layer) {
  if (layer.type == "conv2d") {
    need_image(layer);
    layer.output = window_output(layer, integer_of(layer, "out_channels"), pair_of(layer, "kernel_size"),
                                 pair_of(layer, "stride"), pair_of(layer, "padding"));
  } else if (layer.type == "max_pool2d" || layer.type == "avg_pool2d") {
    infer_pool(layer);
  } else if (layer.type == "adaptive_avg_pool2d") {
    need_image(layer);
    const Pair size = pair_of(layer, "output_size");
    layer.output = {layer.input[0], size[0], size[1]};
  } else if (layer.type == "linear") {
    infer_linear(layer);
  } else if (layer.type == "flatten") {
    layer.output = {static_cast<std::int64_t>(element_count(layer.input))};
  } else {
    layer.output = layer.input;
  }
}

// Shape of the layer's weight, empty if it has none.
Shape weight_shape(const Layer& layer) {
  if (layer.type == "linear") return {layer.output[0], layer.input[0]};
  if (layer.type != "conv2d") return {};
  const Pair kernel = pair_of(layer, "kernel_size");
  return {layer.output[0], layer.input[0], kernel[0], kernel[1]};
}

Layer resolve_layer(const LayerSpec& spec, const Shape& input) {
  const std::string what = "layer \"" + spec.name + "\"";
  const NamedType& type = require_type(layer_types(), spec.type, what);
  Layer layer{spec.name, spec.type, {}, input, {}, {}};
  layer.arguments = complete_arguments(type, spec.arguments, what);
  infer_output(layer);
  return layer;
}

}  // namespace

Network::Network(NetworkSpec spec, Shape input) : name_(std::move(spec.name)), input_(std::move(input)) {
  if (spec.layers.empty()) throw ConfigError("network \"" + name_ + "\" has no layers");
  std::set<std::string> names;
  Shape shape = input_;
  std::size_t offset = 0;
  const auto add_parameter = [&](Layer& layer, const char* suffix, const Shape& parameter_shape,
                                 std::int64_t fan_in) {
    const std::size_t count = element_count(parameter_shape);
    layer.parameters.push_back(parameters_.size());
    parameters_.push_back({layer.name + suffix, parameter_shape, offset, count, fan_in});
    offset += count;
  };
  for (const LayerSpec& layer_spec : spec.layers) {
    if (!names.insert(layer_spec.name).second) {
      throw ConfigError("network \"" + name_ + "\" has two layers called \"" + layer_spec.name + "\"");
    }
    Layer layer = resolve_layer(layer_spec, shape);
    if (const Shape weight = weight_shape(layer); !weight.empty()) {
      const auto fan_in = static_cast<std::int64_t>(element_count(weight)) / weight[0];
      add_parameter(layer, ".weight", weight, fan_in);
      if (std::get<bool>(layer.arguments.at("bias"))) add_parameter(layer, ".bias", {weight[0]}, fan_in);
    }
    shape = layer.output;
    layers_.push_back(std::move(layer));
  }
  if (shape.size() != 1) {
    throw ShapeError("network \"" + name_ + "\" ends with shape " + to_string(shape) +
                     ", but the loss needs [classes]; end it with flatten and linear layers");
  }
}

const Shape& Network::output() const { return layers_.back().output; }

std::size_t Network::parameter_count() const {
  return parameters_.empty() ? 0 : parameters_.back().offset + parameters_.back().count;
}

double Network::forward_flops() const {
  double flops = 0;
  for (const Layer& layer : layers_) {
    if (layer.parameters.empty()) continue;
    const Parameter& weight = parameters_[layer.parameters.front()];
    const double positions =
        static_cast<double>(element_count(layer.output)) / static_cast<double>(weight.shape[0]);
    flops += 2 * positions * static_cast<double>(weight.count);
  }
  return flops;
}

double Network::training_flops() const {
  double flops = 0;
  bool first = true;
  for (const Layer& layer : layers_) {
    if (layer.parameters.empty()) continue;
    const Parameter& weight = parameters_[layer.parameters.front()];
    const double positions =
        static_cast<double>(element_count(layer.output)) / static_cast<double>(weight.shape[0]);
    // Forward, the weight's gradient and the input's; nobody needs the gradient of the network's input.
    flops += (first ? 2 : 3) * 2 * positions * static_cast<double>(weight.count);
    first = false;
  }
  return flops;
}

}  // namespace sweep
