#include "core/network/network.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/random.h"

namespace sweep {
namespace {

// What has a place in a layer, although make_layer() does not look at it. `subject`: of messages.
void check_parts(const LayerSpec& spec, const std::string& subject) {
  const std::string start = subject + ": ";
  const bool has_layers = has_inner_layers(spec.type);
  if (spec.name.empty() || spec.name.find_first_of("./") != std::string::npos)
    throw ConfigError(start + "want a name without '.' and '/'");
  if (spec.layers.empty() == has_layers)
    throw ConfigError(start + spec.type +
                      (has_layers ? " needs \"layers\", at least one" : " has no \"layers\""));
  if (!spec.shortcut.empty() && spec.type != "residual")
    throw ConfigError(start + spec.type + " has no \"shortcut\"");
  if (has_layers) complete_arguments(*find_type(layer_types(), spec.type), spec.arguments, subject);
}

std::size_t count_floats(std::span<const Parameter> arrays) {
  return arrays.empty() ? 0 : arrays.back().offset + arrays.back().count;
}

}  // namespace

std::size_t Network::append(std::span<const LayerSpec> specs, const std::string& prefix, std::size_t input,
                            std::set<std::string>& names) {
  for (const LayerSpec& spec : specs) {
    const std::string name = prefix + spec.name;
    if (!names.insert(name).second) {
      throw ConfigError("network \"" + this->name() + "\" has two layers called \"" + name + "\"");
    }
    check_parts(spec, "layer \"" + name + "\"");
    if (!has_inner_layers(spec.type)) {
      input = append_layer(spec, name, {input});
      continue;
    }
    const std::size_t end = append(spec.layers, name + ".", input, names);
    if (spec.type == "residual") {
      const std::size_t shortcut = append(spec.shortcut, name + ".shortcut.", input, names);
      if (shape_of(end) != shape_of(shortcut)) {
        throw ShapeError(
            "layer \"" + name + "\" (residual): its layers give " + to_string(shape_of(end)) +
            ", but its shortcut gives " + to_string(shape_of(shortcut)) +
            "; a \"shortcut\" with a conv2d of kernel_size 1 can change channels and, by its stride, "
            "height and width");
      }
      input = append_layer({spec.name, spec.type, spec.arguments}, name, {end, shortcut});
    } else {
      input = end;
    }
  }
  return input;
}

std::size_t Network::append_layer(const LayerSpec& spec, const std::string& name,
                                  std::vector<std::size_t> inputs) {
  Layer layer = make_layer(spec, name, shape_of(inputs[0]));
  layer.inputs = std::move(inputs);
  layer.needs_input_gradient = std::ranges::any_of(layer.inputs, [this](std::size_t index) {
    return index != kNetworkInput &&
           (layers_[index].needs_input_gradient || !layers_[index].parameters.empty());
  });
  layers_.push_back(std::move(layer));
  return layers_.size() - 1;
}

Network::Network(NetworkSpec spec, Shape input) : spec_(std::move(spec)), input_(std::move(input)) {
  if (spec_.layers.empty()) throw ConfigError("network \"" + name() + "\" has no layers");
  if (input_.empty() || std::ranges::any_of(input_, [](std::int64_t extent) { return extent < 1; }))
    throw ShapeError("network \"" + name() + "\" has an input of shape " + to_string(input_) +
                     ", want at least one extent, and each at least 1");
  std::set<std::string> names;
  append(spec_.layers, "", kNetworkInput, names);
  if (output().size() != 1) {
    throw ShapeError("network \"" + name() + "\" ends with shape " + to_string(output()) +
                     ", but the loss needs [classes]; end it with flatten and linear layers");
  }
}

const Shape& Network::output() const { return layers_.back().output; }

std::size_t Network::parameter_count() const { return count_floats(parameters_); }

std::size_t Network::buffer_count() const { return count_floats(buffers_); }

double Network::forward_flops(const Layer& layer) const {
  if (!layer.is<layers::Conv2d>() && !layer.is<layers::Linear>()) return 0;
  const Parameter& weight = parameters_[layer.parameters.front()];
  const double positions =
      static_cast<double>(element_count(layer.output)) / static_cast<double>(weight.shape[0]);
  return 2 * positions * static_cast<double>(weight.count);
}

double Network::forward_flops() const {
  double flops = 0;
  for (const Layer& layer : layers_) flops += forward_flops(layer);
  return flops;
}

double Network::training_flops(const Layer& layer) const {
  // Forward, gradient of the weight, and gradient of the input.
  return (layer.needs_input_gradient ? 3 : 2) * forward_flops(layer);
}

double Network::training_flops() const {
  double flops = 0;
  for (const Layer& layer : layers_) flops += training_flops(layer);
  return flops;
}

// PyTorch draws conv2d and linear weights from kaiming_uniform(a = sqrt(5)), which is uniform in
// ±1/sqrt(fan_in), and biases from the same interval.
std::vector<float> initial_parameters(const Network& network, std::uint64_t seed) {
  std::vector<float> values(network.parameter_count());
  std::uint32_t index = 0;
  for (const Parameter& parameter : network.parameters()) {
    const std::uint32_t stream = index++;
    if (parameter.fan_in == 0) {
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(parameter.offset), parameter.count,
                  parameter.initial);
      continue;
    }
    const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(parameter.fan_in)));
    RandomStream random(seed, RandomUse::kInitialisation, stream);
    for (std::size_t i = 0; i < parameter.count; ++i)
      values[parameter.offset + i] = random.uniform(-bound, bound);
  }
  return values;
}

std::vector<float> initial_buffers(const Network& network) {
  std::vector<float> values;
  for (const Parameter& buffer : network.buffers()) values.insert(values.end(), buffer.count, buffer.initial);
  return values;
}

}  // namespace sweep
