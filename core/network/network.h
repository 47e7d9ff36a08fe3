// A network with all shapes known: layers, parameters and where each parameter lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/network/spec.h"

namespace sweep {

/// One weight or bias. All parameters of a network lie in one array of floats, in the order, the layout and
/// with the names of PyTorch's state_dict.
struct Parameter {
  std::string name;         // "conv1.weight"
  Shape shape;              // conv2d weight: [out_channels, in_channels, kernel height, kernel width]
  std::size_t offset = 0;   // in floats, from the start of the array
  std::size_t count = 0;    // in floats
  std::int64_t fan_in = 0;  // inputs that one output of the layer sums over
};

/// One layer with its shapes. Shapes are those of one sample: [channels, height, width] or [features].
struct Layer {
  std::string name;
  std::string type;
  Arguments arguments;  // complete: every default filled in
  Shape input;
  Shape output;
  std::vector<std::size_t>
      parameters;  // indices into Network::parameters(): weight, then bias if there is one
};

/// Immutable once built; may be shared between threads.
class Network {
 public:
  /// Infers every shape from `input`, the shape of one sample: [channels, height, width].
  /// Throws ShapeError, naming the layer, its input shape and what it needs, where layers do not fit;
  /// ConfigError for an unknown type, a wrong argument or a repeated layer name.
  Network(NetworkSpec spec, Shape input);

  const std::string& name() const { return name_; }
  const Shape& input() const { return input_; }
  /// Shape of one sample's output, [classes] for a classifier.
  const Shape& output() const;
  std::span<const Layer> layers() const { return layers_; }
  std::span<const Parameter> parameters() const { return parameters_; }
  /// Floats in all parameters together.
  std::size_t parameter_count() const;
  /// Multiply-adds times two of one sample: forward, and forward with backward (no gradient of the input).
  double forward_flops() const;
  double training_flops() const;

 private:
  std::string name_;
  Shape input_;
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_;
};

/// Initial values of all parameters, as PyTorch's modules draw them by default: weights and biases of conv2d
/// and linear uniform in ±1/sqrt(fan_in). The same seed gives the same bits on every machine and device.
std::vector<float> initial_parameters(const Network& network, std::uint64_t seed);

}  // namespace sweep
