// Fully connected layers. Activations are [images][features], weights [out_features][in_features] as in
// PyTorch.
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

/// out = in · weightᵀ + bias, then relu if `relu`. bias [out_features] or nullptr.
void linear_forward(Stream& stream, const LinearShape& shape, int images, const float* in,
                    const float* weight, const float* bias, bool relu, float* out);

/// The arrays of one layer: in [images][in_features], grad_out [images][out_features], gradient
/// [slices][gradient_floats()].
struct LinearGradient {
  LinearShape shape;
  const float *in, *grad_out;
  float* gradient;
};

/// `slices` for linear_backward_weights() of these layers, with batches of up to `images`.
int linear_gradient_slices(std::span<const LinearShape> shapes, int images);

/// Writes the gradients of up to kMaxGradients layers with one kernel: sums over a part of the images each,
/// to be added up.
inline constexpr int kMaxGradients = 6;
void linear_backward_weights(Stream& stream, std::span<const LinearGradient> layers, int images, int slices);

/// grad_in = grad_out · weight, added to what is there if `add`.
void linear_backward_input(Stream& stream, const LinearShape& shape, int images, const float* grad_out,
                           const float* weight, bool add, float* grad_in);

}  // namespace sweep::cuda
