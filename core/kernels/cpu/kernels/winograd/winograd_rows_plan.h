// How winograd_rows_pool_forward() uses its scratch memory, the same for every instruction set.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/winograd/winograd_rows.h"
#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Outputs of a tile.
inline constexpr std::size_t kRowTile = 4;

/// Rows of the highest kernel.
inline constexpr std::size_t kMaxKernelRows = 16;

/// Inputs of a tile, and products that stand for a row of the kernel.
constexpr std::size_t row_frequencies(const ConvGeometry& g) { return g.kernel_width + kRowTile - 1; }

/// Transformed rows lie in a ring of those that a row of windows needs; what a product tile gives at all
/// frequencies is transformed back at once. Steps in floats; one frequency's arrays must not lie in the same
/// set of the L1 cache as the next one's.
struct RowsLayout {
  /// A product tile covers this many tiles of two rows.
  static constexpr std::size_t kTiles = 2, kPositions = 2 * kTiles;

  explicit constexpr RowsLayout(const ConvGeometry& g)
      : tiles((g.out_width / 2 * 2 + kRowTile - 1) / kRowTile),
        ring(g.kernel_height + 1),
        row(tiles * kLanes),
        channel(ring * row),
        frequency(conflict_free_stride(g.in_channels * ring * tiles) * kLanes),
        product_frequency(conflict_free_stride(g.out_channels * kPositions) * kLanes),
        products(row_frequencies(g) * frequency),
        floats(products + row_frequencies(g) * product_frequency) {}

  std::size_t tiles;               // of a row, as far as there are windows
  std::size_t ring, row, channel;  // [in_channels][ring][tiles][16]
  std::size_t frequency;           // from one to the next
  std::size_t product_frequency;   // [out_channels][rows][tiles][16]
  std::size_t products, floats;
};

}  // namespace sweep::cpu
