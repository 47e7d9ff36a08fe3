// Sizes of tiles and layout of scratch memory of Winograd's kernels, the same for every instruction set.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/kernels/cpu/kernels/winograd/winograd.h"

namespace sweep::cpu {

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
