// Layers: the values that engines read, and what a sweep file writes, with PyTorch's names and arguments.
//
// To add one: its value here; its row and its describe() in layers.cpp; and what it is to
// core/kernels/cpu/compiler.cpp, core/kernels/cuda/ops/layer_ops.h and runmanager/export/model_files.cpp.
// describe() and the last three are visits without a fallback, so the compiler names all five places.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/network/activation.h"
#include "core/network/arguments.h"

namespace sweep {
namespace layers {

using HeightWidth = std::array<std::int64_t, 2>;

struct Window {
  HeightWidth kernel_size, stride, padding;
};

struct Conv2d : Window {
  HeightWidth dilation;
  std::int64_t out_channels, groups;
  bool bias;
};
struct Linear {
  std::int64_t out_features;
  bool bias;
};
struct Activated {
  Activation function;
  float coefficient;  // leaky_relu's negative_slope; 0 of functions without argument
};
struct MaxPool2d : Window {};
struct AvgPool2d : Window {
  bool count_include_pad;
};
struct AdaptiveAvgPool2d {
  HeightWidth output_size;
};
struct BatchNorm2d {
  double eps, momentum;
  bool affine;
};
struct Dropout {
  double p;
};
struct Flatten {};
struct Sum {};  // what is left of a residual

}  // namespace layers

using LayerKind = std::variant<layers::Conv2d, layers::Linear, layers::Activated, layers::MaxPool2d,
                               layers::AvgPool2d, layers::AdaptiveAvgPool2d, layers::BatchNorm2d,
                               layers::Dropout, layers::Flatten, layers::Sum>;

/// One layer of a sweep file. `type` is a name from layer_types(); `arguments` holds what was given, without
/// defaults.
///
/// Two types contain layers, whose full names are such as "block1.conv1". "sequential" applies its `layers`
/// one after the other. "residual" adds the outputs of two paths from its input: `layers` and `shortcut`,
/// which is the identity if it is empty; the shapes of both must be equal.
struct LayerSpec {
  std::string name;  // unique among its siblings, without '.' and '/': "conv1"
  std::string type;  // "conv2d"
  Arguments arguments = {};
  std::vector<LayerSpec> layers = {};    // of sequential and residual
  std::vector<LayerSpec> shortcut = {};  // of residual
};

/// A network of a sweep file, before shapes are known.
struct NetworkSpec {
  std::string name;  // for messages, the graph and the logs: "fashion-cnn"
  std::vector<LayerSpec> layers;
};

/// Every layer type, sequential and residual included, in the order that messages and the schema show.
/// Thread-safe, as all functions here.
std::span<const NamedType> layer_types();

/// Whether layers of this type contain layers: sequential and residual.
bool has_inner_layers(std::string_view type);

/// Returns the name of the class in torch.nn of a type from layer_types(), which PyTorch's graphs show; "Add"
/// for the sum of a residual.
std::string_view torch_class(std::string_view type);

}  // namespace sweep
