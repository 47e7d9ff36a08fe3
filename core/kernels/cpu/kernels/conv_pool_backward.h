// Gradients of a convolution fused with 2×2 max pooling, on one block of 16 images.
//
// Pooling leaves a gradient at one position of four, and ReLU removes more, but at other positions for each
// image, so that vectors over images would be mostly zeros. Here the block is turned to one array per image,
// [y][x][channel], in which the part of the input that a position of the output saw is a few long runs of
// floats. For each output channel the positions with a gradient are listed, and each costs one multiply-add
// per vector of its runs: a quarter or less of the dense work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/kernels/conv_kernels.h"

namespace sweep::cpu {

/// What is the same for every block: sizes and the order in which elements move between a block and the
/// images' arrays.
struct ConvPoolPlan {
  /// `geometry` counts the padding as part of the input; grad_in is wanted without it, `height` × `width`
  /// pixels from row pad_y, column pad_x on, or not at all.
  ConvPoolPlan(const ConvGeometry& geometry, bool needs_grad_in, std::size_t pad_y, std::size_t pad_x,
               std::size_t height, std::size_t width);

  ConvGeometry geometry;
  bool needs_grad_in;
  std::size_t pad_y, pad_x, height, width;
  bool by_columns;  // images' arrays are [x][y][kx][channel] of one column of windows, not [y][x][channel]
  std::size_t image_floats;                    // of an image's array
  std::size_t scratch_floats;                  // working memory that conv_pool_backward() needs
  std::vector<std::uint32_t> in_offsets;       // where each element of an image's array lies in the block
  std::vector<std::uint32_t> grad_in_offsets;  // the same for a row of grad_in
};

/// Where a block's arrays lie; see Op for their layouts.
struct ConvPoolGradients {
  const float* in;        // [in_channels][in_height][in_width][16], with its padding
  const float* weights;   // [out_channels][ky][kx][in_channels]
  const float* grad_out;  // [out_channels][out_height / 2][out_width / 2][16]
  const float* argmax;    // as conv_pool_forward() left it
  float* grad_weights;    // as weights; added to
  float* grad_bias;       // [out_channels] or nullptr; added to
  float* grad_in;         // [in_channels][height][width][16], or nullptr
};

/// Thread-safe for different scratch memory.
void conv_pool_backward(const ConvPoolPlan& plan, const ConvPoolGradients& gradients, float* scratch);

}  // namespace sweep::cpu
