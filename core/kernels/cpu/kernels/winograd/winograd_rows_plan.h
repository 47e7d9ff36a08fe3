// Sizes of tiles and scratch memory of winograd_rows_pool_forward(), the same for every instruction set.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/winograd/winograd_rows.h"
#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Outputs of a tile, neighbours in a row.
inline constexpr std::size_t kRowTile = 4;

/// The largest kernel_height.
inline constexpr std::size_t kMaxKernelRows = 16;

/// Inputs of a tile, and products per row of the kernel.
constexpr std::size_t row_frequencies(const ConvGeometry& g) { return g.kernel_width + kRowTile - 1; }

/// Scratch memory: a ring buffer of transformed rows, as many as a row of pooling windows needs, and the
/// products of one product tile at all frequencies, which are transformed back before the next tile. Steps
/// are in floats, and such that the arrays of different frequencies are not in the same set of the L1 cache.
struct RowsLayout {
  /// A product tile is this many tiles in each of two rows.
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

  std::size_t tiles;               // in a row, as far as pooling windows reach
  std::size_t ring, row, channel;  // [in_channels][ring][tiles][16]
  std::size_t frequency;           // from one frequency to the next
  std::size_t product_frequency;   // [out_channels][rows][tiles][16]
  std::size_t products, floats;
};

}  // namespace sweep::cpu
