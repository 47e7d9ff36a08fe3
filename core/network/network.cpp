#include "core/network/network.h"

#include <set>

#include "core/base/error.h"
#include "core/network/flops.h"

namespace sweep {
namespace {

using layers::HeightWidth;

[[noreturn]] void throw_shape(const Layer& layer, const std::string& problem) {
  throw ShapeError("layer \"" + layer.name + "\" (" + layer.type + "): " + problem);
}

void need_image(const Layer& layer) {
  if (layer.input.size() == 3) return;
  throw_shape(layer, "needs an input of shape [channels, height, width], but gets " + to_string(layer.input));
}

// Output shape of a sliding window, for convolution and pooling: PyTorch's formula with ceil_mode false.
Shape window_output(const Layer& layer, std::int64_t channels, const layers::Window& window,
                    const HeightWidth& dilation) {
  Shape output{channels, 0, 0};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t room =
        layer.input[d + 1] + 2 * window.padding[d] - dilation[d] * (window.kernel_size[d] - 1) - 1;
    if (room < 0) {
      const auto text = [](const HeightWidth& pair) { return to_string(ArgumentValue(pair)); };
      throw_shape(layer, "kernel_size " + text(window.kernel_size) +
                             (dilation == HeightWidth{1, 1} ? "" : " with dilation " + text(dilation)) +
                             " is larger than its input " + to_string(layer.input) + " with padding " +
                             text(window.padding));
    }
    output[d + 1] = room / window.stride[d] + 1;
  }
  return output;
}

Shape pool_output(const Layer& layer, const layers::Window& window) {
  need_image(layer);
  for (std::size_t d = 0; d < 2; ++d) {
    if (2 * window.padding[d] > window.kernel_size[d])
      throw_shape(layer, "padding must be at most half of kernel_size");
  }
  return window_output(layer, layer.input[0], window, {1, 1});
}

// The output's shape, from the input's and the arguments.
Shape output_of(const Layer& layer, const layers::Conv2d& conv) {
  need_image(layer);
  if (layer.input[0] % conv.groups != 0 || conv.out_channels % conv.groups != 0) {
    throw_shape(layer, "groups " + std::to_string(conv.groups) + " does not divide the channels of input " +
                           to_string(layer.input) + " and output, " + std::to_string(conv.out_channels));
  }
  return window_output(layer, conv.out_channels, conv, conv.dilation);
}
Shape output_of(const Layer& layer, const layers::Linear& linear) {
  if (layer.input.size() != 1) {
    throw_shape(layer, "needs an input of shape [features], but gets " + to_string(layer.input) +
                           "; put a flatten layer in front of it");
  }
  return {linear.out_features};
}
Shape output_of(const Layer& layer, const layers::MaxPool2d& pool) { return pool_output(layer, pool); }
Shape output_of(const Layer& layer, const layers::AvgPool2d& pool) { return pool_output(layer, pool); }
Shape output_of(const Layer& layer, const layers::AdaptiveAvgPool2d& pool) {
  need_image(layer);
  return {layer.input[0], pool.output_size[0], pool.output_size[1]};
}
Shape output_of(const Layer& layer, const layers::BatchNorm2d&) {
  need_image(layer);
  return layer.input;
}
Shape output_of(const Layer& layer, const layers::Flatten&) {
  return {static_cast<std::int64_t>(element_count(layer.input))};
}
Shape output_of(const Layer& layer, const layers::Activated&) { return layer.input; }
Shape output_of(const Layer& layer, const layers::Dropout&) { return layer.input; }
Shape output_of(const Layer& layer, const layers::Sum&) { return layer.input; }

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

  // Appends `specs`; the first one reads the output of layer `input`. Returns the index of the last.
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
    Arguments arguments = complete_arguments(type, spec.arguments, label);
    const LayerKind kind = layer_kind(type, arguments);
    Layer layer{name, spec.type, std::move(arguments), kind, output_of(inputs[0]), {}, std::move(inputs),
                {},   {}};
    layer.output = std::visit([&](const auto& value) { return sweep::output_of(layer, value); }, kind);
    std::visit([&](const auto& value) { add_parameters(layer, value); }, kind);
    layers_.push_back(std::move(layer));
    return layers_.size() - 1;
  }

  void add_parameters(Layer& layer, const layers::Conv2d& conv) {
    add_weights(layer,
                {conv.out_channels, layer.input[0] / conv.groups, conv.kernel_size[0], conv.kernel_size[1]},
                conv.bias);
  }
  void add_parameters(Layer& layer, const layers::Linear& linear) {
    add_weights(layer, {linear.out_features, layer.input[0]}, linear.bias);
  }
  void add_parameters(Layer& layer, const layers::BatchNorm2d& norm) {
    const Shape channels = {layer.input[0]};
    if (norm.affine) {
      add_array(parameters_, layer.parameters, layer.name + ".weight", channels, 0, 1);
      add_array(parameters_, layer.parameters, layer.name + ".bias", channels, 0, 0);
    }
    add_array(buffers_, layer.buffers, layer.name + ".running_mean", channels, 0, 0);
    add_array(buffers_, layer.buffers, layer.name + ".running_var", channels, 0, 1);
  }
  void add_parameters(Layer& /*layer*/, const auto& /*without*/) {}

  void add_weights(Layer& layer, const Shape& weight, bool bias) {
    const auto fan_in = static_cast<std::int64_t>(element_count(weight)) / weight[0];
    add_array(parameters_, layer.parameters, layer.name + ".weight", weight, fan_in, 0);
    if (bias) add_array(parameters_, layer.parameters, layer.name + ".bias", {weight[0]}, fan_in, 0);
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
  if (!layer.is<layers::Conv2d>() && !layer.is<layers::Linear>()) return 0;
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
