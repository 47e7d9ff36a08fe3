// A network with all shapes: its layers, its parameters and the layout of the parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/network/layers.h"

namespace sweep {

/// A weight, a bias or an array of running statistics. All parameters of a network are stored in one array of
/// floats, with the order, layout and names of PyTorch's state_dict; all buffers in another.
struct Parameter {
  std::string name;        // "conv1.weight", "block1.bn1.running_mean"
  Shape shape;             // conv2d weight: [out_channels, in_channels / groups, kernel height, kernel width]
  std::size_t offset = 0;  // in floats, from the start of the array
  std::size_t count = 0;   // in floats
  std::int64_t fan_in = 0;  // inputs that each output of the layer sums; 0: initialised with `initial`
  float initial = 0;        // used if fan_in is 0
};

/// Stands for the network's input in Layer::inputs.
inline constexpr std::size_t kNetworkInput = static_cast<std::size_t>(-1);

/// A layer with its shapes, which are those of one sample: [channels, height, width] or [features].
struct Layer {
  std::string name;     // prefixed with the names of the layers that contain it: "block1.conv1"
  std::string type;     // from layer_types(), but never sequential
  Arguments arguments;  // complete: defaults filled in
  LayerKind kind;       // the same as a value
  Shape input;
  Shape output;
  /// Indices into Network::layers(), smaller than this layer's own, or kNetworkInput. Two for residual.
  std::vector<std::size_t> inputs;
  /// Indices into Network::parameters(): weight, then bias, if the layer has them.
  std::vector<std::size_t> parameters;
  /// Indices into Network::buffers(): running mean, running variance of batch_norm2d.
  std::vector<std::size_t> buffers;
  /// Whether an input depends on a parameter; nobody computes the gradient of one that does not.
  bool needs_input_gradient = false;

  /// Returns the value if it is of this kind, else nullptr.
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&kind);
  }
  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(kind);
  }
  bool is_relu() const {
    const auto* activated = as<layers::Activated>();
    return activated != nullptr && activated->function == Activation::kRelu;
  }
};

/// Immutable once built; may be shared between threads.
class Network {
 public:
  /// Infers every shape from `input`, the shape of one sample: [channels, height, width] or [features].
  /// Throws ShapeError, naming the layer, its input shape and what it needs, if shapes do not
  /// match; ConfigError for an unknown type, a wrong argument, a repeated layer name, or a
  /// sequential or residual without layers.
  Network(NetworkSpec spec, Shape input);

  const std::string& name() const { return spec_.name; }
  /// The specification that it was made from.
  const NetworkSpec& spec() const { return spec_; }
  const Shape& input() const { return input_; }
  /// Shape of one sample's output, [classes] for a classifier.
  const Shape& output() const;
  /// In topological order. A sequential is replaced by its layers. The layers of a residual are
  /// followed by a layer of type "residual" with its name, which adds its two inputs: the output of its
  /// layers and that of its shortcut.
  std::span<const Layer> layers() const { return layers_; }
  std::span<const Parameter> parameters() const { return parameters_; }
  /// Values that training updates without gradients: the running statistics of batch_norm2d.
  std::span<const Parameter> buffers() const { return buffers_; }
  /// Number of floats in all parameters, and in all buffers.
  std::size_t parameter_count() const;
  std::size_t buffer_count() const;
  /// Floating-point operations of one sample, two per multiply-add of conv2d and linear; other layers count
  /// as 0. Forward, of one layer or of all; and forward and backward, without the gradient of the network's
  /// input.
  double forward_flops(const Layer& layer) const;
  double forward_flops() const;
  double training_flops() const;
  double training_flops(const Layer& layer) const;

 private:
  /// Appends layers, of which the first reads the output of layer `input`. Returns the index of the last.
  /// `names`: of all layers so far.
  std::size_t append(std::span<const LayerSpec> specs, const std::string& prefix, std::size_t input,
                     std::set<std::string>& names);
  std::size_t append_layer(const LayerSpec& spec, const std::string& name, std::vector<std::size_t> inputs);
  /// Returns the layer of `spec`, whose type is not sequential, without Layer::inputs, and adds its arrays.
  Layer make_layer(const LayerSpec& spec, const std::string& name, const Shape& input);
  const Shape& shape_of(std::size_t layer) const {
    return layer == kNetworkInput ? input_ : layers_[layer].output;
  }

  NetworkSpec spec_;
  Shape input_;
  std::vector<Layer> layers_;
  std::vector<Parameter> parameters_, buffers_;
};

/// Initial values of all parameters, with the distributions of PyTorch's defaults: weights and biases of
/// conv2d and linear are uniform in ±1/sqrt(fan_in); weights of batch_norm2d are 1 and its biases 0. A seed
/// gives the same bits on every machine and device.
std::vector<float> initial_parameters(const Network& network, std::uint64_t seed);

/// Initial values of all buffers: running means 0, running variances 1.
std::vector<float> initial_buffers(const Network& network);

}  // namespace sweep
