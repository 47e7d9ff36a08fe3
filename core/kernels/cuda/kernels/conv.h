// Convolutions of any shape. Activations are [images][channels][height][width], weights
// [out_channels][in_channels / groups][kernel_height][kernel_width] as in PyTorch.
#pragma once

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct ConvShape {
  int in_channels, in_height = 1, in_width = 1;
  int out_channels, out_height = 1, out_width = 1;
  int kernel_height = 1, kernel_width = 1;
  int stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0, dilation_y = 1, dilation_x = 1;
  int groups = 1;
  bool bias;

  int group_in() const { return in_channels / groups; }
  int group_out() const { return out_channels / groups; }
  int taps() const { return group_in() * kernel_height * kernel_width; }
  int weights() const { return out_channels * taps(); }
  /// Floats of a gradient: the weights', then the biases', if there are any.
  int gradient_floats() const { return weights() + (bias ? out_channels : 0); }
};

/// out = conv(in, weight) + bias, then relu if `relu`. bias [out_channels] or nullptr.
void conv_forward(Stream& stream, const ConvShape& shape, int images, const float* in, const float* weight,
                  const float* bias, bool relu, float* out);

/// `slices` for conv_backward_weights() with batches of up to `images`.
int conv_gradient_slices(const ConvShape& shape, int images);

/// Writes `gradient` [slices][gradient_floats()]: sums over a part of the images and positions each, to be
/// added up.
void conv_backward_weights(Stream& stream, const ConvShape& shape, int images, int slices, const float* in,
                           const float* grad_out, float* gradient);

/// The gradient of the input, added to what grad_in holds if `add`.
void conv_backward_input(Stream& stream, const ConvShape& shape, int images, const float* grad_out,
                         const float* weight, bool add, float* grad_in);

}  // namespace sweep::cuda
