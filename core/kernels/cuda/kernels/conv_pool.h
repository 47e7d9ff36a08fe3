// Small convolutions with relu and 2×2 max pooling, one or two of them in a row, fused into one kernel
// forward and one backward. A block keeps a whole image in shared memory: the output of the convolution is
// never written out, and backward skips the positions that the pooling has dropped, three of four at least.
// Meant for 1, 6 or 12 channels, where the tiles of library kernels would be mostly empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// A convolution with stride 1, dilation 1 and one group, then relu, then 2×2 pooling with stride 2.
struct ConvPoolShape {
  int in_channels, in_height, in_width;
  int out_channels, pool_height, pool_width;  // output of the pooling
  int kernel_height, kernel_width, pad_y, pad_x;
  bool bias;

  constexpr int padded_height() const { return in_height + 2 * pad_y; }
  constexpr int padded_width() const { return in_width + 2 * pad_x; }
  constexpr int taps() const { return in_channels * kernel_height * kernel_width; }
  constexpr int weights() const { return out_channels * taps(); }
  constexpr int outputs() const { return out_channels * pool_height * pool_width; }
  /// Bytes of `argmax` per image: a multiple of four, so that it can be copied as words.
  constexpr int argmax_bytes() const { return (outputs() + 3) / 4 * 4; }
  /// Floats of a gradient: the weights', then the biases', if there are any.
  constexpr int gradient_floats() const { return weights() + (bias ? out_channels : 0); }
};

/// The convolutions of one kernel; each reads what the one before it gives.
inline constexpr int kMaxConvPools = 2;
struct ConvPoolChain {
  int count = 0;
  ConvPoolShape shapes[kMaxConvPools];
};

/// Whether the kernels can do `chain`: its convolutions are all 3 × 3 or all 5 × 5, its arrays fit into 64
/// KiB of shared memory, its sums into registers. input_gradient: whether the gradient of the first
/// convolution's input is ever needed.
bool conv_pool_fits(const ConvPoolChain& chain, bool input_gradient);

/// The part of that which conv_pool_backward() needs: whether it has the threads and registers for a
/// convolution, and its bytes of shared memory.
bool conv_pool_backward_fits(const ConvPoolShape& shape);
std::size_t conv_pool_backward_bytes(const ConvPoolChain& chain, bool input_gradient);

/// What the first convolution reads: floats [images][channels][height][width], or, if `floats` is nullptr,
/// the samples of the batch.
struct ConvPoolInput {
  const float* floats = nullptr;
  const StepInput* input = nullptr;
  const std::uint32_t* rows = nullptr;  // [images]
  Normalisation normalisation = {};
};

/// The device arrays of one convolution of a chain.
struct ConvPoolArrays {
  const float* weight = nullptr;  // [out_channels][in_channels][kernel_height][kernel_width]
  const float* bias = nullptr;    // [out_channels], or nullptr
  float* out = nullptr;  // [images][outputs()]: pool(relu(conv)); forward: nullptr if nobody reads it
  std::uint8_t* argmax =
      nullptr;  // [images][argmax_bytes()]: 0 … 3, the window's maximum, or kDeadRelu; as `out`
  float* gradient = nullptr;  // [slices][gradient_floats()], to be added up over the slices
};
/// Marks an output that is 0 because the relu has cut off the maximum: no gradient passes.
inline constexpr std::uint8_t kDeadRelu = 4;

/// `arrays`: one element per convolution of the chain, as below.
void conv_pool_forward(Stream& stream, const ConvPoolChain& chain, int images, const ConvPoolInput& in,
                       const ConvPoolArrays* arrays);

/// Slices that conv_pool_backward() writes for batches of up to `images`.
int conv_pool_gradient_slices(int images);

/// Reads the `out` and `argmax` that forward has written. grad_out [images][outputs() of the last]. grad_in
/// [images][channels][height][width] of the first, added to what is there if `add`; nullptr if nobody needs
/// it.
void conv_pool_backward(Stream& stream, const ConvPoolChain& chain, int images, int slices,
                        const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out,
                        bool add, float* grad_in);

}  // namespace sweep::cuda
