// Matrix products C(m, n) = Σ_k A(m, k) · B(k, n) whose factors are functions of their indices (implicit
// GEMM). Convolutions and linear layers are such products, forward and backward; im2col matrices never exist
// in memory.
//
// Grid: (tiles across, tiles down, slices) blocks. A block computes one tile of C, kRows × kColumns. In steps
// of kDepth along k, its threads load a tile of A and one of B to shared memory, synchronise, and multiply:
// each thread keeps kThreadRows × kThreadColumns sums in registers. Every sum runs over k from small to
// large, whatever the tile size, so the bits depend neither on the tile nor on the GPU.
#pragma once

#include "core/kernels/cuda/kernels/sum_order.h"
#include "core/kernels/cuda/runtime/divisor.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// The part of k that one slice adds up: begin … end − 1.
struct SumRange {
  int begin, end;
};

/// Rows and columns of C per block, steps of k between barriers, rows and columns of C per thread. Shared
/// memory: 8 · kDepth · (kRows + kThreadRows + kColumns + 1) bytes.
template <int kRows_, int kColumns_, int kDepth_, int kThreadRows_, int kThreadColumns_>
struct Tile {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kDepth = kDepth_;
  static constexpr int kThreadRows = kThreadRows_, kThreadColumns = kThreadColumns_;
  static constexpr int kThreadsAcross = kColumns / kThreadColumns;
  static constexpr int kThreadCount = kRows / kThreadRows * kThreadsAcross;
};

// 16.6 KiB for 256 threads.
using LargeTile = Tile<64, 64, 16, 4, 4>;
// 18.6 KiB for 128 threads: few rows, such as the channels of a small convolution.
using FlatTile = Tile<16, 128, 16, 4, 4>;
// 12.8 KiB for 128 threads: where larger tiles would be fewer than multiprocessors.
using SmallTile = Tile<16, 32, 32, 2, 2>;

// A Problem has
//   int rows, columns, slices              of C, and the number of C: groups, or slices of the sums over k
//   SumRange range(slice)                  the slice's part of k
//   Row row(slice, m), Column column(slice, n), Depth a_depth(k), b_depth(k)
//                                          what can be worked out once per index and used for many elements
//   float a(Row, Depth), b(Depth, Column)  an element of A, of B
//   void store(slice, m, n, sum)           takes an element of C
//   static constexpr bool kARowsAlongK, kBColumnsAlongK
//                                          whether neighbours along k are neighbours in memory

// What a thread loads of a tile of A or B, kDepth × `extent` (rows of A, columns of B). It loads the same
// rows or columns in every step, so it works out their Row or Column once. Neighbouring threads load
// neighbours in memory: if those are neighbours along k, a thread has one k and several indices, else one
// index and several k.
template <class Tile, int extent, bool along_k>
struct TileLoad {
  static constexpr int kElements = extent * Tile::kDepth / Tile::kThreadCount;
  static constexpr int kIndices = along_k ? kElements : 1, kDepths = along_k ? 1 : kElements;
  static_assert(kElements * Tile::kThreadCount == extent * Tile::kDepth);
  static_assert(Tile::kThreadCount % (along_k ? Tile::kDepth : extent) == 0);
  float values[kDepths][kIndices];

  static __device__ int index(int thread, int i) {
    return along_k ? thread / Tile::kDepth + i * (Tile::kThreadCount / Tile::kDepth) : thread % extent;
  }
  static __device__ int depth(int thread, int i) {
    return along_k ? thread % Tile::kDepth : thread / extent + i * (Tile::kThreadCount / extent);
  }
  template <int kStride>
  __device__ void store(int thread, float (&tile)[Tile::kDepth][kStride]) const {
    for (int d = 0; d < kDepths; ++d)
      for (int i = 0; i < kIndices; ++i) tile[depth(thread, d)][index(thread, i)] = values[d][i];
  }
};

// Computes the tile in row y and column x of one slice of C. All threads of the block call it. There are two
// pairs of tiles in shared memory, so a step needs one barrier.
template <class Tile, class Problem>
__device__ void compute_tile(const Problem& problem, int x, int y, int slice) {
  using LoadA = TileLoad<Tile, Tile::kRows, Problem::kARowsAlongK>;
  using LoadB = TileLoad<Tile, Tile::kColumns, Problem::kBColumnsAlongK>;
  // The padding spreads a column over the banks, and aligns a thread's rows of A, which it reads at once.
  alignas(16) __shared__ float a[2][Tile::kDepth][Tile::kRows + Tile::kThreadRows];
  __shared__ float b[2][Tile::kDepth][Tile::kColumns + 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = y * Tile::kRows, first_column = x * Tile::kColumns;
  typename Problem::Row rows[LoadA::kIndices];
  typename Problem::Column columns[LoadB::kIndices];
  for (int i = 0; i < LoadA::kIndices; ++i) rows[i] = problem.row(slice, first_row + LoadA::index(thread, i));
  for (int i = 0; i < LoadB::kIndices; ++i)
    columns[i] = problem.column(slice, first_column + LoadB::index(thread, i));
  const int thread_row = thread / Tile::kThreadsAcross * Tile::kThreadRows,
            thread_column = thread % Tile::kThreadsAcross;
  const SumRange range = problem.range(slice);
  float sums[Tile::kThreadRows][Tile::kThreadColumns] = {};
  // Multiplies step `first`, if there is one, while the elements of the next step are on their way.
  for (int first = range.begin - Tile::kDepth, at = 0; first < range.end;
       first += Tile::kDepth, at = 1 - at) {
    LoadA next_a;
    LoadB next_b;
    for (int d = 0; d < LoadA::kDepths; ++d) {
      const int k = first + Tile::kDepth + LoadA::depth(thread, d);
      const typename Problem::Depth position = problem.a_depth(k);
      for (int i = 0; i < LoadA::kIndices; ++i) {
        const bool is_inside = first_row + LoadA::index(thread, i) < problem.rows && k < range.end;
        next_a.values[d][i] = is_inside ? problem.a(rows[i], position) : 0.0f;
      }
    }
    for (int d = 0; d < LoadB::kDepths; ++d) {
      const int k = first + Tile::kDepth + LoadB::depth(thread, d);
      const typename Problem::Depth position = problem.b_depth(k);
      for (int i = 0; i < LoadB::kIndices; ++i) {
        const bool is_inside = first_column + LoadB::index(thread, i) < problem.columns && k < range.end;
        next_b.values[d][i] = is_inside ? problem.b(position, columns[i]) : 0.0f;
      }
    }
    for (int depth = 0; depth < Tile::kDepth && first >= range.begin; ++depth) {
      float a_values[Tile::kThreadRows], b_values[Tile::kThreadColumns];
      for (int r = 0; r < Tile::kThreadRows; ++r) a_values[r] = a[at][depth][thread_row + r];
      // A thread's columns are kThreadsAcross apart: neighbouring threads read neighbouring words, without
      // bank conflicts.
      for (int c = 0; c < Tile::kThreadColumns; ++c)
        b_values[c] = b[at][depth][thread_column + c * Tile::kThreadsAcross];
      for (int r = 0; r < Tile::kThreadRows; ++r)
        for (int c = 0; c < Tile::kThreadColumns; ++c) sums[r][c] += a_values[r] * b_values[c];
    }
    next_a.store(thread, a[1 - at]);
    next_b.store(thread, b[1 - at]);
    __syncthreads();
  }
  for (int r = 0; r < Tile::kThreadRows; ++r) {
    for (int c = 0; c < Tile::kThreadColumns; ++c) {
      const int m = first_row + thread_row + r, n = first_column + thread_column + c * Tile::kThreadsAcross;
      if (m < problem.rows && n < problem.columns) problem.store(slice, m, n, sums[r][c]);
    }
  }
}

template <class Tile, class Problem>
__global__ void __launch_bounds__(Tile::kThreadCount) product_kernel(Problem problem) {
  compute_tile<Tile>(problem, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                     static_cast<int>(blockIdx.z));
}

// Several products in one kernel, one after the other in the grid's only dimension: each has a range of
// blocks.
template <class Tile, class Problem, int kMax>
struct ProductsKernel {
  static constexpr unsigned kMaxThreads = Tile::kThreadCount;
  int count = 0, blocks = 0;
  Problem problems[kMax] = {};
  int first_block[kMax] = {};

  void add(const Problem& problem) {
    problems[count] = problem;
    first_block[count++] = blocks;
    blocks +=
        ceil_div(problem.columns, Tile::kColumns) * ceil_div(problem.rows, Tile::kRows) * problem.slices;
  }

  __device__ void operator()() const {
    const int block = static_cast<int>(blockIdx.x);
    int p = 0;
    while (p + 1 < count && block >= first_block[p + 1]) ++p;
    const Problem& problem = problems[p];
    const int columns = ceil_div(problem.columns, Tile::kColumns),
              row_of_tiles = (block - first_block[p]) / columns,
              tile_rows = ceil_div(problem.rows, Tile::kRows);
    compute_tile<Tile>(problem, block - first_block[p] - row_of_tiles * columns, row_of_tiles % tile_rows,
                       row_of_tiles / tile_rows);
  }
};

template <class Tile, class Problem>
void launch_product(Stream& stream, const Problem& problem) {
  launch(stream, product_kernel<Tile, Problem>,
         {static_cast<unsigned>(ceil_div(problem.columns, Tile::kColumns)),
          static_cast<unsigned>(ceil_div(problem.rows, Tile::kRows)), static_cast<unsigned>(problem.slices)},
         {static_cast<unsigned>(Tile::kThreadCount)}, problem);
}

/// Computes C with the tile that suits its size: small tiles until they would be more blocks than
/// `most_small`.
template <class Problem>
void launch_product(Stream& stream, const Problem& problem, std::int64_t most_small = kSmallTileBlocks) {
  const auto blocks = [&](int rows, int columns) {
    return static_cast<std::int64_t>(ceil_div(problem.rows, rows)) * ceil_div(problem.columns, columns) *
           problem.slices;
  };
  if (blocks(SmallTile::kRows, SmallTile::kColumns) <= most_small) {
    launch_product<SmallTile>(stream, problem);
  } else if (problem.rows <= FlatTile::kRows) {
    launch_product<FlatTile>(stream, problem);
  } else {
    launch_product<LargeTile>(stream, problem);
  }
}

/// Into how many slices the sums of a weight gradient are divided (split-K). C is small there, `rows` ×
/// `columns`, and each sum long, `products` products. Depends on the shapes alone, because the bits of the
/// gradient depend on it.
inline int sum_slices(int rows, int columns, std::int64_t products) {
  const std::int64_t tiles =
      static_cast<std::int64_t>(ceil_div(rows, SmallTile::kRows)) * ceil_div(columns, SmallTile::kColumns);
  const std::int64_t most = (products + kLeastProductsPerSlice - 1) / kLeastProductsPerSlice,
                     wanted = (kConvGradientBlocks + tiles - 1) / tiles;
  return static_cast<int>(most < wanted ? (most > 0 ? most : 1) : wanted);
}

/// Slice number `slice` of the range 0 … count − 1, divided into `slices` slices of equal size; the last may
/// be shorter.
inline __host__ __device__ SumRange slice_of(int count, int slices, int slice) {
  const int size = ceil_div(count, slices), begin = size * slice;
  return {begin < count ? begin : count, begin + size < count ? begin + size : count};
}

}  // namespace sweep::cuda
