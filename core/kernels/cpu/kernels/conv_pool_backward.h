// Gradients of a convolution fused with 2×2 max pooling, on one block of 16 images.
//
// Max pooling leaves a gradient at one of four positions, and ReLU removes more of them. Which ones differs
// between images, so vectors over images would be mostly zeros. This kernel exploits the sparsity:
//
//   1. The input block is transposed to one array per image, [y][x][channel]. The patch of the input that an
//      output position sees is then kernel_height contiguous runs of kernel_width · channels floats.
//   2. For each output channel, the nonzero gradients are compressed into a list: the value, and the offset
//      of the position's patch. A list covers some images and some rows of windows, so few that their
//      patches stay in the L1 cache.
//   3. Gradient of the weights: the sums of one output channel, [ky][kx][in], are held in registers, and
//      each list entry adds value · patch to them.
//   4. Gradient of the input: the weights of one output channel are held in registers, and each list entry
//      adds value · weights to its patch of the gradient's arrays, which are transposed back at the end.
//
// An entry costs one multiply-add per vector of its patch: a quarter of the dense work or less.
// Additions happen in the order of the lists (images, then positions), which depends on the vector width
// and sizes, but not on threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// What is the same for every block: sizes, and where the transposes find their values.
struct ConvPoolPlan {
  /// `needs_grad_in`: whether the input's gradient is computed, without the padding.
  ConvPoolPlan(const ConvGeometry& geometry, bool needs_grad_in);

  ConvGeometry geometry;
  bool needs_grad_in;
  // Images' arrays are [2 positions][y][kx][channel] of one column of windows instead of [y][x][channel].
  // Taken if runs would be shorter than a vector, and no grad_in is needed: then a patch is one run of
  // kernel_height · kernel_width · channels floats.
  bool by_columns;
  std::size_t image_floats;                    // size of an image's array
  std::size_t scratch_floats;                  // scratch memory of conv_pool_backward()
  std::vector<std::uint32_t> in_offsets;       // per value of an image's array: its offset in the block
  std::vector<std::uint32_t> grad_in_offsets;  // the same for one row of grad_in
};

/// The arrays of a block.
struct ConvPoolGradients {
  const float* in;        // [in_channels][in_height][in_width][16], with its padding
  const float* weights;   // [out_channels][ky][kx][in_channels]
  const float* grad_out;  // [out_channels][out_height / 2][out_width / 2][16]
  const float* argmax;    // [as grad_out] int32, from conv_pool_forward()
  float* grad_weights;    // as weights; added to
  float* grad_bias;       // [out_channels] or nullptr; added to
  float* grad_in;         // [in_channels][height][width][16], or nullptr
};

/// `scratch` has plan.scratch_floats floats. Thread-safe for different scratch memory and gradients.
extern const Kernel<void(const ConvPoolPlan& plan, const ConvPoolGradients& gradients, float* scratch)>
    conv_pool_backward;

}  // namespace sweep::cpu
