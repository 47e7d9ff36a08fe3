// A network with all shapes known: layers, parameters and where each parameter lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/network/layer_spec.h"

namespace sweep {

/// One weight or bias, or one array of running statistics. All parameters of a network lie in one array of
/// floats, in the order, the layout and with the names of PyTorch's state_dict; its buffers in another.
struct Parameter {
  std::string name;        // "conv1.weight", "block1.bn1.running_mean"
  Shape shape;             // conv2d weight: [out_channels, in_channels / groups, kernel height, kernel width]
  std::size_t offset = 0;  // in floats, from the start of the array
  std::size_t count = 0;   // in floats
  std::int64_t fan_in = 0;  // inputs that one output of the layer sums over; 0: starts as `initial`
  float initial = 0;
};

/// Stands for the network's input in Layer::inputs.
inline constexpr std::size_t kNetworkInput = static_cast<std::size_t>(-1);

/// One layer with its shapes. Shapes are those of one sample: [channels, height, width] or [features].
struct Layer {
  std::string name;  // with the names of the layers around it: "block1.conv1"
  std::string type;
  Arguments arguments;  // complete: every default filled in
  Shape input;
  Shape output;
  std::vector<std::size_t> inputs;  // places in Network::layers(), all before this layer's own
  std::vector<std::size_t>
      parameters;  // places in Network::parameters(): weight, then bias, as far as there are
  std::vector<std::size_t>
      buffers;  // places in Network::buffers(): running mean and variance of batch_norm2d
};

/// Immutable once built; may be shared between threads.
class Network {
 public:
  /// Infers every shape from `input`, the shape of one sample: [channels, height, width].
  /// Throws ShapeError, naming the layer, its input shape and what it needs, where layers do not fit;
  /// ConfigError for an unknown type, a wrong argument, a repeated layer name or a sequential or residual
  /// without layers.
  Network(NetworkSpec spec, Shape input);

  const std::string& name() const { return name_; }
  const Shape& input() const { return input_; }
  /// Shape of one sample's output, [classes] for a classifier.
  const Shape& output() const;
  /// In an order in which they can be computed. Inner layers stand in the places of their sequential; those
  /// of a residual come before a layer of type "residual" that bears its name and adds its two inputs: the
  /// end of its layers, then the end of its shortcut.
  std::span<const Layer> layers() const { return layers_; }
  std::span<const Parameter> parameters() const { return parameters_; }
  /// What training changes without gradients: the running statistics of batch_norm2d.
  std::span<const Parameter> buffers() const { return buffers_; }
  /// Floats in all parameters together, and in all buffers.
  std::size_t parameter_count() const;
  std::size_t buffer_count() const;
  /// Multiply-adds times two of one sample: forward, and forward with backward (no gradient of the input).
  double forward_flops() const;
  double training_flops() const;

 private:
  std::string name_;
  Shape input_;
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_, buffers_;
};

/// Initial values of all parameters, as PyTorch's modules draw them by default: weights and biases of conv2d
/// and linear uniform in ±1/sqrt(fan_in), weights of batch_norm2d 1 and its biases 0. The same seed gives the
/// same bits on every machine and device.
std::vector<float> initial_parameters(const Network& network, std::uint64_t seed);

/// Initial values of all buffers: running means 0, running variances 1.
std::vector<float> initial_buffers(const Network& network);

}  // namespace sweep
