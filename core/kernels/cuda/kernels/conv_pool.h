// Small convolutions with relu and 2×2 max pooling, one or two of them in a row, in one kernel forward and
// one backward: a block has an image in its shared memory. What the convolution gives is never written out,
// and the zeros that the pooling leaves in its gradient are skipped, three of four and more. Where libraries
// fill their tiles by a fraction, with 1, 6 or 12 channels.
#pragma once

#include <cstdint>

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Stride and dilation 1, one group; pooling 2×2 with stride 2.
struct ConvPoolShape {
  int in_channels, in_height, in_width;
  int out_channels, pool_height, pool_width;  // of the output of the pooling
  int kernel_height, kernel_width, pad_y, pad_x;
  bool bias;

  int padded_height() const { return in_height + 2 * pad_y; }
  int padded_width() const { return in_width + 2 * pad_x; }
  int taps() const { return in_channels * kernel_height * kernel_width; }
  int weights() const { return out_channels * taps(); }
  int outputs() const { return out_channels * pool_height * pool_width; }
  /// Floats of a gradient: the weights', then the biases', if there are any.
  int gradient_floats() const { return weights() + (bias ? out_channels : 0); }
};

/// What one kernel does: the second takes what the first gives.
inline constexpr int kMaxConvPools = 2;
struct ConvPoolChain {
  int count = 0;
  ConvPoolShape shapes[kMaxConvPools];
};

/// Whether the kernels can do it: their arrays fit into a block's shared memory, their sums into its threads'
/// registers.
bool conv_pool_fits(const ConvPoolChain& chain);

/// Where the convolution reads: floats [images][channels][height][width], or, if `floats` is nullptr, the
/// pixels of the batch.
struct ConvPoolInput {
  const float* floats = nullptr;
  const StepInput* input = nullptr;
  const std::uint32_t* rows = nullptr;
  Normalisation normalisation = {};
};

/// The arrays of one convolution of a chain.
struct ConvPoolArrays {
  const float *weight = nullptr, *bias = nullptr;  // bias: or nullptr
  /// [images][outputs()], pool(relu(conv)), and of the same shape which of the four places it comes from, or
  /// kDeadRelu if the relu let nothing through. Forward, either may be nullptr if nobody needs it.
  float* out = nullptr;
  std::uint8_t* argmax = nullptr;
  float* gradient = nullptr;  // [parts][gradient_floats()], to be added up over the parts
};
inline constexpr std::uint8_t kDeadRelu = 4;

void conv_pool_forward(Stream& stream, const ConvPoolChain& chain, int images, const ConvPoolInput& in,
                       const ConvPoolArrays* arrays);

/// Parts that conv_pool_backward() writes for batches of up to `images`.
int conv_pool_gradient_parts(int images);

/// grad_out: of the last of the chain. grad_in, added to what is there if `add`, or nullptr if nobody needs
/// it.
void conv_pool_backward(Stream& stream, const ConvPoolChain& chain, int images, int parts,
                        const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out,
                        bool add, float* grad_in);

}  // namespace sweep::cuda
