// Direct convolution of one block of 16 images, tiled for registers. Thread-safe: pure
// functions of their arguments.
//
// A register tile is up to conv_channel_tile() output channels × 4 output positions of accumulators. Each
// loaded input vector is used for all channels of the tile, and each broadcast weight for all 4 positions:
// with 6 channels, 24 multiply-adds take 10 loads, so arithmetic is the limit, not the loads. With 2×2
// pooling the 4 positions are one pooling window, and only its maximum is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// Rounds a stride in cache lines up to an odd number. A tile reads the same pixel of many channels: planes
/// whose stride is a multiple of 64 cache lines (the number of sets of common L1 caches) would all be in the
/// same set and evict each other; with an odd stride they are spread over all sets.
constexpr std::size_t conflict_free_stride(std::size_t lines) { return lines | 1; }

/// Sizes of a convolution, in values. The input includes its zero padding. With groups: of one group.
struct ConvGeometry {
  std::size_t in_channels, in_height, in_width;
  std::size_t out_channels, out_height, out_width;
  std::size_t kernel_height, kernel_width;
  std::size_t stride_y, stride_x;
  std::size_t dilation_y, dilation_x;
  std::size_t in_plane;  // floats from one channel of the input to the next
  std::size_t pad_y = 0, pad_x = 0;

  std::size_t taps() const { return kernel_height * kernel_width; }
  /// Of the input without its padding.
  std::size_t height() const { return in_height - 2 * pad_y; }
  std::size_t width() const { return in_width - 2 * pad_x; }
};

/// Output channels of the largest register tile on this machine.
extern const Kernel<std::size_t()> conv_channel_tile;

/// Reorders weights [out][ky][kx][in], the layout that conv_pool_backward() needs, for this machine's
/// register tiles: per tile [in][ky][kx][output channel in tile], the order in which a tile reads them.
/// `transposed`: for the gradient of the input, which is a convolution with transposed and rotated weights:
/// tiles of input channels, [out][ky][kx][channel in tile], with both kernel axes reversed. `packed` has as
/// many floats as `weights`.
void pack_conv_weights(const ConvGeometry& g, const float* weights, bool transposed, float* packed);

/// out = conv(in) + bias, then max(0, ·) if `relu`. in [in_channels][in_height][in_width][16], with in_plane
/// floats from channel to channel; packed from pack_conv_weights(); bias [out_channels] or nullptr; out
/// [out_channels][out_height][out_width][16].
extern const Kernel<void(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                         bool relu, float* out)>
    conv_forward;

/// The same followed by 2×2 max pooling with stride 2, without dilation. out and argmax are
/// [out_channels][out_height / 2][out_width / 2][16]; argmax holds int32: which of the window's 4 positions
/// (row-major) was the largest, or 4 where ReLU made the maximum zero, so that it has no gradient.
extern const Kernel<void(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                         bool relu, float* out, float* argmax)>
    conv_pool_forward;

/// Zero columns on each side of a padded gradient's rows. A tile of conv_backward_input() has 4 neighbouring
/// pixels and reads every column that one of them needs, so it reads up to 3 columns beyond the image.
inline constexpr std::size_t kGradientBorder = 3;

/// Padded gradient of a convolution's output: [out_channels][rows][pitch][16], where output (y, x) is at
/// row y · gap_y, column border + x · gap_x, and everything else is zero. Gaps are 1, except with both
/// stride and dilation: then they are the stride, so that the input's gradient is an ordinary dilated
/// convolution of the array with the gaps.
struct ConvGradient {
  const float* data;
  std::size_t rows, pitch, border, gap_y, gap_x;  // in pixels; pitch: from row to row, both borders included
  std::size_t channel_floats() const { return conflict_free_stride(rows * pitch) * kLanes; }
};

/// Copies grad_out [out_channels][out_height][out_width][16] to `gradient`, which has the layout above
/// and zeros in its borders and gaps already. If `out`, the output after ReLU, is not nullptr, writes
/// zeros where it is not above 0.
extern const Kernel<void(const ConvGeometry& g, const float* grad_out, const float* out,
                         const ConvGradient& layout, float* gradient)>
    pad_gradient;

/// Writes the gradient of the input without its padding, [in_channels][height][width][16]: the interior of
/// the padded input from row pad_y, column pad_x on. `packed` is transposed, from pack_conv_weights().
extern const Kernel<void(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                         float* grad_in)>
    conv_backward_input;

/// Adds the block's gradients to grad_weights [out][ky][kx][in].
extern const Kernel<void(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                         float* grad_weights)>
    conv_backward_weights;

/// The same, with the same bits, of a block with few images: vectors are along the output channels instead of
/// the images. `scratch` has conv_weights_scratch_floats() for each image.
extern const Kernel<void(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                         std::size_t images, float* scratch, float* grad_weights)>
    conv_backward_weights_of_few;
std::size_t conv_weights_scratch_floats(const ConvGeometry& g);

/// Adds the block's gradients to grad_bias [out_channels].
extern const Kernel<void(const ConvGeometry& g, const ConvGradient& gradient, float* grad_bias)>
    conv_backward_bias;

/// What is the same for every block of a convolution with pooling: sizes, and where the transposes find their
/// values.
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

/// Gradients of a convolution fused with 2×2 max pooling. `scratch` has plan.scratch_floats floats.
/// Thread-safe for different scratch memory and gradients.
extern const Kernel<void(const ConvPoolPlan& plan, const ConvPoolGradients& gradients, float* scratch)>
    conv_pool_backward;

}  // namespace sweep::cpu
