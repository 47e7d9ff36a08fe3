// Fully connected layers. Arrays are [images][features], weights [out_features][in_features] as PyTorch's.
#pragma once

#include <span>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct LinearShape {
  int in_features, out_features;
  bool bias;

  int weights() const { return out_features * in_features; }
  /// Floats of a gradient: the weights', then the biases', if there are any.
  int gradient_floats() const { return weights() + (bias ? out_features : 0); }
};

/// out = in · weightᵀ + bias, and its positive part if `relu`. bias [out_features] or nullptr.
void linear_forward(Stream& stream, const LinearShape& shape, int images, const float* in,
                    const float* weight, const float* bias, bool relu, float* out);

/// Parts that linear_backward_weights() writes for batches of up to `images`.
int linear_gradient_parts(const LinearShape& shape, int images);

/// gradient [parts][gradient_floats()], to be added up over the parts.
void linear_backward_weights(Stream& stream, const LinearShape& shape, int images, int parts, const float* in,
                             const float* grad_out, float* gradient);

/// One layer of linear_backward_weights() for several: its arrays, as there.
struct LinearGradient {
  LinearShape shape;
  const float *in, *grad_out;
  float* gradient;
};

/// Parts of each layer's gradient for batches of up to `images`, where one kernel computes them all.
int linear_gradient_parts(std::span<const LinearShape> shapes, int images);

/// The same for up to kMaxGradients layers, in one kernel.
inline constexpr int kMaxGradients = 6;
void linear_backward_weights(Stream& stream, std::span<const LinearGradient> layers, int images, int parts);

/// grad_in, added to what is there if `add`.
void linear_backward_input(Stream& stream, const LinearShape& shape, int images, const float* grad_out,
                           const float* weight, bool add, float* grad_in);

}  // namespace sweep::cuda
