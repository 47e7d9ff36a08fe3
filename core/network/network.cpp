#include "core/network/network.h"

#include <set>
#include <stdexcept>

#include "core/base/error.h"
#include "core/network/flops.h"
#include "core/spec/activation.h"

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

Pair pair_of(const Layer& layer, const char* name) { return std::get<Pair>(layer.arguments.at(name)); }

std::int64_t integer_of(const Layer& layer, const char* name) {
  return std::get<std::int64_t>(layer.arguments.at(name));
}

// Output shape of a sliding window, for convolution and pooling: PyTorch's formula with ceil_mode false.
Shape window_output(const Layer& layer, std::int64_t channels, Pair stride, Pair padding, Pair dilation) {
  const Pair kernel = pair_of(layer, "kernel_size");
  Shape output{channels, 0, 0};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t room = layer.input[d + 1] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    if (room < 0) {
      throw_shape(layer,
                  "kernel_size " + to_string(ArgumentValue(kernel)) +
                      (dilation == Pair{1, 1} ? "" : " with dilation " + to_string(ArgumentValue(dilation))) +
                      " is larger than its input " + to_string(layer.input) + " with padding " +
                      to_string(ArgumentValue(padding)));
    }
    output[d + 1] = room / stride[d] + 1;
  }
  return output;
}

void infer_pool(Layer& layer) {
  need_image(layer);
  const Pair kernel = pair_of(layer, "kernel_size");
  layer.arguments.try_emplace("stride", kernel);
  const Pair padding = pair_of(layer, "padding");
  for (std::size_t d = 0; d < 2; ++d) {
    if (2 * padding[d] > kernel[d]) throw_shape(layer, "padding must be at most half of kernel_size");
  }
  layer.output = window_output(layer, layer.input[0], pair_of(layer, "stride"), padding, {1, 1});
}

void infer_linear(Layer& layer) {
  if (layer.input.size() != 1) {
    throw_shape(layer, "needs an input of shape [features], but gets " + to_string(layer.input) +
                           "; put a flatten layer in front of it");
  }
  layer.output = {integer_of(layer, "out_features")};
}

void infer_conv(Layer& layer) {
  need_image(layer);
  const std::int64_t groups = integer_of(layer, "groups"), out_channels = integer_of(layer, "out_channels");
  if (layer.input[0] % groups != 0 || out_channels % groups != 0) {
    throw_shape(layer, "groups " + std::to_string(groups) + " does not divide the channels of input " +
                           to_string(layer.input) + " and output, " + std::to_string(out_channels));
  }
  layer.output = window_output(layer, out_channels, pair_of(layer, "stride"), pair_of(layer, "padding"),
                               pair_of(layer, "dilation"));
}

// Sets the output shape from the input shape and the arguments.
void infer_output(Layer& layer) {
  if (layer.type == "conv2d") {
    infer_conv(layer);
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
  } else if (layer.type == "batch_norm2d") {
    need_image(layer);
    layer.output = layer.input;
  } else if (layer.type == "dropout" || layer.type == "residual" || find_activation(layer.type) != nullptr) {
    layer.output = layer.input;
  } else {
    throw std::logic_error("the output of layers of type " + layer.type + " is not known here");
  }
}

// Shape of the layer's weight, in PyTorch's layout; empty if it has none.
Shape weight_shape(const Layer& layer) {
  if (layer.type == "linear") return {layer.output[0], layer.input[0]};
  if (layer.type == "batch_norm2d" && std::get<bool>(layer.arguments.at("affine"))) return {layer.input[0]};
  if (layer.type != "conv2d") return {};
  const Pair kernel = pair_of(layer, "kernel_size");
  return {layer.output[0], layer.input[0] / integer_of(layer, "groups"), kernel[0], kernel[1]};
}

void add_array(std::vector<Parameter>& arrays, std::vector<std::size_t>& indices, std::string name,
               Shape shape, std::int64_t fan_in, float initial) {
  const std::size_t offset = arrays.empty() ? 0 : arrays.back().offset + arrays.back().count;
  const std::size_t count = element_count(shape);
  indices.push_back(arrays.size());
  arrays.push_back({std::move(name), std::move(shape), offset, count, fan_in, initial});
}

// Flattens nested layers into one list and infers their shapes.
class Flattener {
 public:
  Flattener(const std::string& network, const Shape& input, std::vector<Layer>& layers,
            std::vector<Parameter>& parameters, std::vector<Parameter>& buffers)
      : network_(network), input_(input), layers_(layers), parameters_(parameters), buffers_(buffers) {}

  // Appends `specs`, the first of which reads the output of layer `input`. Returns the index of the last.
  std::size_t append(std::span<const LayerSpec> specs, const std::string& prefix, std::size_t input) {
    for (const LayerSpec& spec : specs) {
      const std::string name = prefix + spec.name;
      if (!names_.insert(name).second) {
        throw ConfigError("network \"" + network_ + "\" has two layers called \"" + name + "\"");
      }
      if (has_inner_layers(spec.type)) {
        if (spec.layers.empty()) {
          throw ConfigError("layer \"" + name + "\": a " + spec.type + " needs \"layers\", at least one");
        }
        const std::size_t end = append(spec.layers, name + ".", input);
        input = spec.type == "residual" ? append_sum(spec, name, input, end) : end;
      } else {
        input = append_layer(spec, name, {input});
      }
    }
    return input;
  }

 private:
  const Shape& output_of(std::size_t layer) const {
    return layer == kNetworkInput ? input_ : layers_[layer].output;
  }

  std::size_t append_sum(const LayerSpec& spec, const std::string& name, std::size_t input, std::size_t end) {
    const std::size_t shortcut = append(spec.shortcut, name + ".shortcut.", input);
    if (output_of(end) != output_of(shortcut)) {
      throw ShapeError(
          "layer \"" + name + "\" (residual): its layers give " + to_string(output_of(end)) +
          ", but its shortcut gives " + to_string(output_of(shortcut)) +
          "; a \"shortcut\" with a conv2d of kernel_size 1 can change channels and, by its stride, "
          "height and width");
    }
    return append_layer({spec.name, spec.type, spec.arguments}, name, {end, shortcut});
  }

  std::size_t append_layer(const LayerSpec& spec, const std::string& name, std::vector<std::size_t> inputs) {
    const std::string label = "layer \"" + name + "\"";  // for messages
    const NamedType& type = require_type(layer_types(), spec.type, label);
    Layer layer{name,
                spec.type,
                complete_arguments(type, spec.arguments, label),
                output_of(inputs[0]),
                {},
                std::move(inputs),
                {},
                {}};
    infer_output(layer);
    add_parameters(layer);
    layers_.push_back(std::move(layer));
    return layers_.size() - 1;
  }

  void add_parameters(Layer& layer) {
    const Shape weight = weight_shape(layer);
    if (layer.type == "batch_norm2d") {
      const Shape channels = {layer.input[0]};
      if (!weight.empty()) {
        add_array(parameters_, layer.parameters, layer.name + ".weight", channels, 0, 1);
        add_array(parameters_, layer.parameters, layer.name + ".bias", channels, 0, 0);
      }
      add_array(buffers_, layer.buffers, layer.name + ".running_mean", channels, 0, 0);
      add_array(buffers_, layer.buffers, layer.name + ".running_var", channels, 0, 1);
    } else if (!weight.empty()) {
      const auto fan_in = static_cast<std::int64_t>(element_count(weight)) / weight[0];
      add_array(parameters_, layer.parameters, layer.name + ".weight", weight, fan_in, 0);
      if (std::get<bool>(layer.arguments.at("bias")))
        add_array(parameters_, layer.parameters, layer.name + ".bias", {weight[0]}, fan_in, 0);
    }
  }

  const std::string& network_;
  const Shape& input_;
  std::vector<Layer>& layers_;
  std::vector<Parameter>&parameters_, &buffers_;
  std::set<std::string> names_;
};

std::size_t count_floats(std::span<const Parameter> arrays) {
  return arrays.empty() ? 0 : arrays.back().offset + arrays.back().count;
}

}  // namespace

double layer_flops(const Network& network, const Layer& layer) {
  if (layer.type != "conv2d" && layer.type != "linear") return 0;
  const Parameter& weight = network.parameters()[layer.parameters.front()];
  const double positions =
      static_cast<double>(element_count(layer.output)) / static_cast<double>(weight.shape[0]);
  return 2 * positions * static_cast<double>(weight.count);
}

Network::Network(NetworkSpec spec, Shape input) : spec_(std::move(spec)), input_(std::move(input)) {
  if (spec_.layers.empty()) throw ConfigError("network \"" + name() + "\" has no layers");
  Flattener(spec_.name, input_, layers_, parameters_, buffers_).append(spec_.layers, "", kNetworkInput);
  if (output().size() != 1) {
    throw ShapeError("network \"" + name() + "\" ends with shape " + to_string(output()) +
                     ", but the loss needs [classes]; end it with flatten and linear layers");
  }
}

const Shape& Network::output() const { return layers_.back().output; }

std::size_t Network::parameter_count() const { return count_floats(parameters_); }

std::size_t Network::buffer_count() const { return count_floats(buffers_); }

double Network::forward_flops() const {
  double flops = 0;
  for (const Layer& layer : layers_) flops += layer_flops(*this, layer);
  return flops;
}

double Network::training_flops() const {
  double flops = 0;
  for (const Layer& layer : layers_) {
    // Forward, gradient of the weight, gradient of the input; the last is not
    // computed for the network's input.
    const bool first = layer.inputs[0] == kNetworkInput;
    flops += (first ? 2 : 3) * layer_flops(*this, layer);
  }
  return flops;
}

}  // namespace sweep
