// 3×3 convolutions by Winograd's minimal filtering, on one block of 16 images. For 4×4 outputs of a pair of
// channels it takes 36 products with stride 1, and 81 with stride 2, where the direct kernels take 144.
// Thread-safe: pure functions of their arguments and scratch memory.
//
// The algorithm (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015), here F(4×4, 3×3), is
//
//   outputs = Aᵀ [ (G weights Gᵀ) ⊙ (Bᵀ patch B) ] A
//
// for a tile of 4×4 outputs and the patch of the input that they see (6×6, or 9×9 with stride 2). A patch is
// transformed to 36 or 81 factors. At each factor the convolution is a product of matrices over the channels,
// [out][in] · [in][tiles and images], which gives results at 36 or 25 "frequencies" (with stride 2 several
// factors add up to one frequency; see Scheme2), and those are transformed back to outputs. The transforms
// cost little if there are many channels, because each patch is transformed once for all output channels, and
// each output once for all input channels.
//
// The gradient of the input is the same algorithm with rotated and transposed weights. The gradient of the
// weights is the transposed algorithm, Gᵀ [ (A gradient Aᵀ) ⊙ (Bᵀ patch B) ] G, in which the products are
// summed over tiles and images and transformed back once per block.
//
// Rounding differs from the direct kernels; winograd_transforms-inl.h says by how much.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// Whether this convolution should use the functions below, in all three directions: they support
/// it, and they are faster than the direct kernels. Depends on the sizes alone, so that the choice
/// does not depend on the machine.
bool use_winograd(const ConvGeometry& g);

/// Outputs of a tile per axis that is transformed.
inline constexpr std::size_t kWinogradTile = 4;

/// Transforms weights [out_channels][3][3][in_channels] to winograd_weight_floats() floats: for
/// winograd_forward(), or, `transposed`, for winograd_backward_input().
std::size_t winograd_weight_floats(const ConvGeometry& g);
extern const Kernel<void(const ConvGeometry& g, const float* weights, bool transposed, float* transformed)>
    winograd_transform_weights;

/// Floats of scratch memory, aligned to a cache line, that each of the three functions below needs. Its
/// contents do not matter.
std::size_t winograd_scratch_floats(const ConvGeometry& g);

/// Like conv_forward(), with `transformed` weights.
extern const Kernel<void(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                         bool relu, float* out, float* scratch)>
    winograd_forward;

/// Like conv_backward_input(), with transposed `transformed` weights.
extern const Kernel<void(const ConvGeometry& g, const ConvGradient& gradient, const float* transformed,
                         float* grad_in, float* scratch)>
    winograd_backward_input;

/// Like conv_backward_weights(). The gradients of all images after the first `images` are zero.
extern const Kernel<void(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                         std::size_t images, float* grad_weights, float* scratch)>
    winograd_backward_weights;

// Along rows only, fused with 2×2 max pooling: see winograd_rows.cpp.

/// Whether winograd_rows_pool_forward() supports this convolution and is faster than conv_pool_forward().
/// Depends on the sizes alone, so that the choice does not depend on the machine.
bool use_winograd_rows(const ConvGeometry& g);

/// Transforms weights [out_channels][kernel_height][kernel_width][in_channels] to
/// winograd_rows_weight_floats() floats.
std::size_t winograd_rows_weight_floats(const ConvGeometry& g);
void winograd_rows_transform_weights(const ConvGeometry& g, const float* weights, float* transformed);

/// Floats of scratch memory, aligned to a cache line, that the function below
/// needs. Its contents do not matter.
std::size_t winograd_rows_scratch_floats(const ConvGeometry& g);

/// Like conv_pool_forward(), with `transformed` weights.
extern const Kernel<void(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                         bool relu, float* out, float* argmax, float* scratch)>
    winograd_rows_pool_forward;

// Sizes of tiles and layout of scratch memory, the same for every instruction set.

/// Tiles that are transformed and multiplied together: the width of a register tile of products. With 8 or
/// 12, the transforms lose more in the caches than the products gain (measured).
inline constexpr std::size_t kProductTiles = 4;

/// Tiles that cover `extent` outputs.
constexpr std::size_t winograd_tiles(std::size_t extent, std::size_t tile = kWinogradTile) {
  return (extent + tile - 1) / tile;
}

/// Numbers that a tile of outputs, and its patch of the input, are transformed to: both axes together.
constexpr std::size_t winograd_frequencies(std::size_t stride) { return stride == 1 ? 36 : 25; }
constexpr std::size_t winograd_factors(std::size_t stride) { return stride == 1 ? 36 : 81; }

/// Floats from one frequency or factor to the next in arrays [..][channels][kProductTiles][16]. A transform
/// writes to all of them at once, so they must not be in the same set of the L1 cache.
constexpr std::size_t winograd_step(std::size_t channels) {
  return conflict_free_stride(channels * kProductTiles) * kLanes;
}

/// Scratch memory of winograd_backward_weights(): offsets and steps in floats. It works on a rectangle of at
/// most kProductTiles tiles and on kLanes input channels at a time.
struct WinogradWeightsLayout {
  explicit constexpr WinogradWeightsLayout(const ConvGeometry& g)
      : tile_columns(std::min(winograd_tiles(g.out_width), kProductTiles)),
        tile_rows(kProductTiles / tile_columns),
        strip_width(tile_columns * kWinogradTile * g.stride_x + 3 - g.stride_x),
        strip_height(tile_rows * kWinogradTile * g.stride_y + 3 - g.stride_y),
        strip_image(conflict_free_stride(strip_width * strip_height) * kLanes),
        gradient_step(winograd_step(g.out_channels)),
        patch_step(winograd_step(kLanes)),
        sum_step(conflict_free_stride(g.out_channels) * kLanes),
        sum_channels(winograd_factors(g.stride_x) * sum_step),
        gradients(kLanes * strip_image),
        patches(gradients + winograd_frequencies(g.stride_x) * gradient_step),
        sums(patches + winograd_factors(g.stride_x) * patch_step),
        floats(sums + (g.in_channels + kLanes - 1) / kLanes * sum_channels) {}

  std::size_t tile_columns, tile_rows;  // size of the rectangle
  // The strip, the input under the rectangle: [16 images][pixels][16 channels].
  std::size_t strip_width, strip_height, strip_image;
  std::size_t gradient_step;           // [frequencies][out_channels][kProductTiles][16 images]
  std::size_t patch_step;              // [factors][kProductTiles][16 images][16 channels]
  std::size_t sum_step, sum_channels;  // [parts of in_channels][factors][out_channels][16 channels]
  std::size_t gradients, patches, sums, floats;
};

}  // namespace sweep::cpu
