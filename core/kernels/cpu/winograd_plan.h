// Sizes of what Winograd's kernels keep in their scratch memory, the same for every instruction set.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/kernels/cpu/winograd.h"

namespace sweep::cpu {

/// Tiles that are transformed and multiplied before the next ones are: as many as a register tile of products
/// covers. With 8 or 12, measured, the transforms lose more in the caches than the products win.
inline constexpr std::size_t kProductTiles = 4;

/// Tiles that cover `extent` outputs.
constexpr std::size_t winograd_tiles(std::size_t extent) {
  return (extent + kWinogradTile - 1) / kWinogradTile;
}

/// Floats from one frequency to the next of arrays [36][channels][kProductTiles][16]. A transform writes all
/// 36 at once: they must not lie in the same set of the L1 cache.
constexpr std::size_t winograd_frequency_floats(std::size_t channels) {
  return spread_over_cache(channels * kProductTiles) * kLanes;
}

/// How winograd_backward_weights() uses its scratch memory: offsets and steps in floats. It takes a rectangle
/// of at most kProductTiles tiles and kLanes input channels at a time.
struct WinogradWeightsLayout {
  explicit constexpr WinogradWeightsLayout(const ConvGeometry& g)
      : wide(std::min(winograd_tiles(g.out_width), kProductTiles)),
        high(kProductTiles / wide),
        strip_width(wide * kWinogradTile + 2),
        strip_image(spread_over_cache(strip_width * (high * kWinogradTile + 2)) * kLanes),
        gradient_frequency(winograd_frequency_floats(g.out_channels)),
        patch_frequency(winograd_frequency_floats(kLanes)),
        sum_frequency(spread_over_cache(g.out_channels) * kLanes),
        sum_channels(kWinogradFrequencies * sum_frequency),
        gradients(kLanes * strip_image),
        patches(gradients + kWinogradFrequencies * gradient_frequency),
        sums(patches + kWinogradFrequencies * patch_frequency),
        floats(sums + (g.in_channels + kLanes - 1) / kLanes * sum_channels) {}

  std::size_t wide, high;                   // of the rectangle, in tiles
  std::size_t strip_width, strip_image;     // the input under it: [16 images][pixels][16 channels]
  std::size_t gradient_frequency;           // [36][out_channels][kProductTiles][16 images]
  std::size_t patch_frequency;              // [36][kProductTiles][16 images][16 channels]
  std::size_t sum_frequency, sum_channels;  // [parts of in_channels][36][out_channels][16 channels]
  std::size_t gradients, patches, sums, floats;
};

}  // namespace sweep::cpu
