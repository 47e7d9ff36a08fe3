// Convolution of one block of 16 images, direct and register-tiled. Thread-safe: pure functions of their
// arguments.
//
// A tile is up to conv_channel_tile() output channels × 4 output positions, all in registers; each loaded
// input vector serves every channel of the tile and each broadcast weight serves 4 positions, so the
// multiply-adds, not the loads, are the limit. With 2×2 pooling the 4 positions are one pooling window, and
// only its maximum is stored.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Rounds up a number of cache lines to an odd one. Where a tile reads the same pixel of many channels,
/// planes of 64 lines or a multiple would all lie in the same set of the L1 cache, and drive each other out.
constexpr std::size_t conflict_free_stride(std::size_t lines) { return lines | 1; }

/// Sizes in elements. The input includes its zero padding.
struct ConvGeometry {
  std::size_t in_channels, in_height, in_width;
  std::size_t out_channels, out_height, out_width;
  std::size_t kernel_height, kernel_width;
  std::size_t stride_y, stride_x;
  std::size_t dilation_y, dilation_x;
  std::size_t in_plane;  // floats from one channel of the input to the next

  std::size_t taps() const { return kernel_height * kernel_width; }
};

/// Channels in the widest tile of this machine's registers.
std::size_t conv_channel_tile();

/// Weights lie as [out][ky][kx][in] between the kernels: see conv_pool_backward.h. These two convert from and
/// to PyTorch's [out][in][ky][kx].
void import_conv_weights(const ConvGeometry& g, const float* pytorch, float* weights);
void export_conv_weights(const ConvGeometry& g, const float* weights, float* pytorch);

/// Reorders weights to tiles of at most `tile` channels, conv_channel_tile() for the functions below: for
/// each tile of output channels [in][ky][kx][channel in tile]. `packed` holds as many floats as `weights`.
void pack_conv_weights(const ConvGeometry& g, std::size_t tile, const float* weights, float* packed);

/// The same for the gradient of the input, where the roles change: tiles of input channels,
/// [out][ky][kx][channel in tile], with both kernel axes reversed.
void pack_conv_weights_transposed(const ConvGeometry& g, std::size_t tile, const float* weights,
                                  float* packed);

/// Packed weights as pairs of `summed` channels (in_channels; out_channels where transposed), for tiles over
/// the other `tiled` ones: see bf16_kernels.h.
void pack_conv_weight_pairs(const ConvGeometry& g, std::size_t tile, std::size_t summed, std::size_t tiled,
                            const float* packed, float* pairs);

/// out = conv(in) + bias, then max(0, ·) if `relu`. bias [out_channels] or nullptr.
/// in [in_channels][in_height][in_width][16] with planes in_plane apart, out
/// [out_channels][out_height][out_width][16].
void conv_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias, bool relu,
                  float* out);

/// The same followed by 2×2 max pooling with stride 2, without dilation. out [out_channels][out_height /
/// 2][out_width / 2][16]; winner, of the same size, holds int32: which of the window's 4 positions
/// (row-major) was largest, or 4 where ReLU cut it.
void conv_pool_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                       bool relu, float* out, float* argmax);

/// Zero columns on each side of a gradient's rows, which conv_backward_input reads beyond the image.
inline constexpr std::size_t kGradientBorder = 3;

/// Gradient of a convolution's output as the functions below read it: [out_channels][rows][pitch][16],
/// where output (y, x) lies at row y·gap_y, column border + x·gap_x, and all else is zero. Gaps are 1, or the
/// stride where there is dilation too: then the input's gradient is an ordinary convolution of what has gaps.
struct ConvGradient {
  const float* data;
  std::size_t rows, pitch, border, gap_y, gap_x;
  std::size_t channel_floats() const { return conflict_free_stride(rows * pitch) * kLanes; }
};

/// Copies grad_out [out_channels][out_height][out_width][16] into the layout above; where `out` is given,
/// only where it is > 0 (ReLU).
void pad_gradient(const ConvGeometry& g, const float* grad_out, const float* out, const ConvGradient& layout,
                  float* gradient);

/// Gradient of the input without its padding: [in_channels][height][width][16] for the interior that starts
/// at row pad_y, column pad_x of the padded input. `packed` is from pack_conv_weights_transposed.
void conv_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                         std::size_t pad_y, std::size_t pad_x, std::size_t height, std::size_t width,
                         float* grad_in);

/// Adds the block's gradients to grad_weights [out][ky][kx][in].
void conv_backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                           float* grad_weights);

/// Adds the block's gradients to grad_bias [out_channels].
void conv_backward_bias(const ConvGeometry& g, const ConvGradient& gradient, float* grad_bias);

}  // namespace sweep::cpu
