// The kinds of layers as typed values, with PyTorch's arguments.
//
// To add one: its value here, its row in layer_types.cpp, and what it is to network.cpp (shapes),
// core/kernels/cpu/compiler.cpp, core/kernels/cuda/compiler.cpp (ops) and runmanager/export/onnx_graph.cpp.
// These four are visits without a fallback, so the compiler names them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/spec/activation.h"
#include "core/spec/arguments.h"

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

/// Returns the value of a layer of a type from layer_types() except "sequential". `arguments` are complete,
/// except the stride of a pooling, which this adds if it is missing. Thread-safe.
LayerKind layer_kind(const NamedType& type, Arguments& arguments);

/// Returns the name of the class in torch.nn of a type from layer_types(), which PyTorch's graphs show; "Add"
/// for the sum of a residual. Thread-safe.
std::string_view torch_class(std::string_view type);

}  // namespace sweep
