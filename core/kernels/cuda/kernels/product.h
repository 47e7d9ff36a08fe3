// Matrix products whose factors are computed where they are needed: C(m, n) = Σ_k A(m, k) · B(k, n).
// Convolutions and linear layers, forward and backward, are such products; none of them needs its factors in
// memory as matrices.
//
// A block computes a tile of C. Its threads bring tiles of A and B to shared memory, and each thread adds up
// a few rows and columns in registers, k from small to large: the bits do not depend on the tile, nor on the
// GPU.
#pragma once

#include "core/kernels/cuda/runtime/divisor.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// The part of C's k-sums that one slice of the grid adds up.
struct SumRange {
  int begin, end;
};

/// Rows and columns of C per block, steps of k between barriers, and rows and columns per thread.
template <int kRows_, int kColumns_, int kDepth_, int kOwnRows_, int kOwnColumns_>
struct Tile {
  static constexpr int kRows = kRows_, kColumns = kColumns_, kDepth = kDepth_;
  static constexpr int kOwnRows = kOwnRows_, kOwnColumns = kOwnColumns_;
  static constexpr int kThreadColumns = kColumns / kOwnColumns;
  static constexpr int kThreadCount = kRows / kOwnRows * kThreadColumns;
};

using LargeTile = Tile<64, 64, 16, 4, 4>;  // 256 threads
using FlatTile =
    Tile<16, 128, 16, 4, 4>;  // 128 threads: few rows, such as the channels of a small convolution
using SmallTile = Tile<16, 32, 32, 2, 2>;  // 128 threads: where large ones would leave most of the GPU idle

// A Problem has
//   int rows, columns, slices         of C, and how many C there are: groups, or parts of the k-sums
//   SumRange range(slice)             of k
//   Row row(slice, m), Column column(slice, n), and Depth a_depth(k), b_depth(k): what has to be worked out
//   of an index
//                                     once for many elements
//   float a(Row, Depth), b(Depth, Column)
//   void store(slice, m, n, sum)
//   static constexpr bool kARowsAlongK, kBColumnsAlongK: whether neighbours in memory are neighbours in k

// How the threads of a block share out a part of A or B, kDepth × `extent` (rows or columns): each has the
// same rows and columns in every step. If neighbours in memory are neighbours in k, a thread has one k and
// several columns, else one column and several k.
template <class Tile, int extent, bool along_k>
struct Share {
  static constexpr int kElements = extent * Tile::kDepth / Tile::kThreadCount;
  static constexpr int kLines = along_k ? kElements : 1, kDepths = along_k ? 1 : kElements;
  static_assert(kElements * Tile::kThreadCount == extent * Tile::kDepth);
  static_assert(Tile::kThreadCount % (along_k ? Tile::kDepth : extent) == 0);

  static __device__ int line(int thread, int i) {
    return along_k ? thread / Tile::kDepth + i * (Tile::kThreadCount / Tile::kDepth) : thread % extent;
  }
  static __device__ int depth(int thread, int i) {
    return along_k ? thread % Tile::kDepth : thread / extent + i * (Tile::kThreadCount / extent);
  }
};

// Tile number (x, y) of one slice of C.
template <class Tile, class Problem>
__device__ void compute_tile(const Problem& problem, int x, int y, int slice) {
  using ShareA = Share<Tile, Tile::kRows, Problem::kARowsAlongK>;
  using ShareB = Share<Tile, Tile::kColumns, Problem::kBColumnsAlongK>;
  __shared__ float a[Tile::kDepth][Tile::kRows + 1];  // the padding spreads columns over the banks
  __shared__ float b[Tile::kDepth][Tile::kColumns + 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = y * Tile::kRows, first_column = x * Tile::kColumns;
  typename Problem::Row rows[ShareA::kLines];
  typename Problem::Column columns[ShareB::kLines];
  for (int i = 0; i < ShareA::kLines; ++i) rows[i] = problem.row(slice, first_row + ShareA::line(thread, i));
  for (int i = 0; i < ShareB::kLines; ++i)
    columns[i] = problem.column(slice, first_column + ShareB::line(thread, i));
  const int own_row = thread / Tile::kThreadColumns * Tile::kOwnRows,
            own_column = thread % Tile::kThreadColumns;
  const SumRange range = problem.range(slice);
  float sums[Tile::kOwnRows][Tile::kOwnColumns] = {};
  for (int first = range.begin; first < range.end; first += Tile::kDepth) {
    for (int d = 0; d < ShareA::kDepths; ++d) {
      const int depth = ShareA::depth(thread, d), k = first + depth;
      const typename Problem::Depth at = problem.a_depth(k);
      for (int i = 0; i < ShareA::kLines; ++i) {
        const int row = ShareA::line(thread, i);
        a[depth][row] = first_row + row < problem.rows && k < range.end ? problem.a(rows[i], at) : 0.0f;
      }
    }
    for (int d = 0; d < ShareB::kDepths; ++d) {
      const int depth = ShareB::depth(thread, d), k = first + depth;
      const typename Problem::Depth at = problem.b_depth(k);
      for (int i = 0; i < ShareB::kLines; ++i) {
        const int column = ShareB::line(thread, i);
        b[depth][column] =
            first_column + column < problem.columns && k < range.end ? problem.b(at, columns[i]) : 0.0f;
      }
    }
    __syncthreads();
    for (int depth = 0; depth < Tile::kDepth; ++depth) {
      float own_a[Tile::kOwnRows], own_b[Tile::kOwnColumns];
      for (int r = 0; r < Tile::kOwnRows; ++r) own_a[r] = a[depth][own_row + r];
      // A thread's columns lie apart, so that neighbouring threads read neighbouring words.
      for (int c = 0; c < Tile::kOwnColumns; ++c) own_b[c] = b[depth][own_column + c * Tile::kThreadColumns];
      for (int r = 0; r < Tile::kOwnRows; ++r)
        for (int c = 0; c < Tile::kOwnColumns; ++c) sums[r][c] += own_a[r] * own_b[c];
    }
    __syncthreads();
  }
  for (int r = 0; r < Tile::kOwnRows; ++r) {
    for (int c = 0; c < Tile::kOwnColumns; ++c) {
      const int m = first_row + own_row + r, n = first_column + own_column + c * Tile::kThreadColumns;
      if (m < problem.rows && n < problem.columns) problem.store(slice, m, n, sums[r][c]);
    }
  }
}

template <class Tile, class Problem>
__global__ void __launch_bounds__(Tile::kThreadCount) product_kernel(Problem problem) {
  compute_tile<Tile>(problem, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                     static_cast<int>(blockIdx.z));
}

// Several products in one kernel: a range of blocks for each.
template <class Tile, class Problem, int kMax>
struct ProductsKernel {
  static constexpr unsigned kMaxThreads = Tile::kThreadCount;
  int count = 0, blocks = 0;
  Problem problems[kMax];
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
    const int columns = ceil_div(problem.columns, Tile::kColumns), line = (block - first_block[p]) / columns,
              tile_rows = ceil_div(problem.rows, Tile::kRows);
    compute_tile<Tile>(problem, block - first_block[p] - line * columns, line % tile_rows, line / tile_rows);
  }
};

template <class Tile, class Problem>
void launch_product(Stream& stream, const Problem& problem) {
  launch(stream, product_kernel<Tile, Problem>,
         {static_cast<unsigned>(ceil_div(problem.columns, Tile::kColumns)),
          static_cast<unsigned>(ceil_div(problem.rows, Tile::kRows)), static_cast<unsigned>(problem.slices)},
         {static_cast<unsigned>(Tile::kThreadCount)}, problem);
}

/// Computes C with the tile that suits its size.
template <class Problem>
void launch_product(Stream& stream, const Problem& problem) {
  constexpr int kBlocksToFill = 128;  // about as many as a large GPU has multiprocessors
  const auto blocks = [&](int rows, int columns) {
    return static_cast<std::int64_t>(ceil_div(problem.rows, rows)) * ceil_div(problem.columns, columns) *
           problem.slices;
  };
  if (blocks(SmallTile::kRows, SmallTile::kColumns) <= 4 * kBlocksToFill) {
    launch_product<SmallTile>(stream, problem);
  } else if (problem.rows <= FlatTile::kRows) {
    launch_product<FlatTile>(stream, problem);
  } else {
    launch_product<LargeTile>(stream, problem);
  }
}

/// Into how many parts the sums of a weight gradient are cut, of `products` products each, so that a C of
/// `rows` × `columns` fills a GPU. Depends on the shapes alone, as the bits of the gradient depend on it.
inline int sum_parts(int rows, int columns, std::int64_t products) {
  constexpr std::int64_t kMin = 64, kBlocks = 256;
  const std::int64_t tiles =
      static_cast<std::int64_t>(ceil_div(rows, SmallTile::kRows)) * ceil_div(columns, SmallTile::kColumns);
  const std::int64_t most = (products + kMin - 1) / kMin, wanted = (kBlocks + tiles - 1) / tiles;
  return static_cast<int>(most < wanted ? (most > 0 ? most : 1) : wanted);
}

/// Part `part` of `parts` of the range 0 … count − 1.
inline __host__ __device__ SumRange part_of(int count, int parts, int part) {
  const int share = ceil_div(count, parts), begin = share * part;
  return {begin < count ? begin : count, begin + share < count ? begin + share : count};
}

}  // namespace sweep::cuda
