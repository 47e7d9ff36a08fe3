// The sizes that decide into which slices sums are divided, and so the bits of results. They are those of one
// GPU, an H100 or H200, and never of the GPU at hand: every GPU with room for the same kernels gives the same
// bits. To change one changes the bits of what is trained from then on.
#pragma once

#include <cstdint>

namespace sweep::cuda {

/// Multiprocessors of the GPU that the others are made for.
inline constexpr int kMultiprocessors = 132;

/// Most blocks of the fused convolutions' backward kernel, and so slices of their weight gradients: two for
/// each multiprocessor, as many as are resident.
inline constexpr int kResidentConvBlocks = 2 * kMultiprocessors;

/// Threads of a block of that kernel, and of one for a convolution with more kernel rows than that: within a
/// block, a weight's gradient is divided into as many runs of pooled positions as there are threads for.
inline constexpr int kConvBackwardThreads = 384, kWideConvBackwardThreads = 512;
/// Pooled positions of such a run are a multiple of this.
inline constexpr int kWindowsAtOnce = 4;

/// Threads of a block of the fused convolutions' forward kernel: sums over input channels are divided so that
/// all have work.
inline constexpr int kConvForwardThreads = 192;

/// Max blocks of the kernel for stacks of linear layers: one for each multiprocessor, since a block takes
/// most of the shared memory. Then its totals: a block has one for each sample of a group of four.
inline constexpr int kStackBlocks = kMultiprocessors;
inline constexpr int kStackTotals = 4 * kStackBlocks;

/// A matrix product takes small tiles until these would be more blocks than this.
inline constexpr std::int64_t kSmallTileBlocks = 4 * kMultiprocessors;

/// Blocks that the weight gradient of a convolution is divided into, and those of linear layers in one
/// kernel. Eight are resident on a multiprocessor.
inline constexpr std::int64_t kConvGradientBlocks = 8 * kMultiprocessors;
inline constexpr std::int64_t kLinearGradientBlocks = 8 * kMultiprocessors;

/// Shares of a batch that several GPUs share, however many do; and so the most GPUs that can.
inline constexpr int kBatchShares = 8;

/// Runs that a channel's values are divided into for the sums of batch normalization: of so many values each,
/// but at most so many runs, which a block joins.
inline constexpr int kValuesPerNormRun = 2048;
inline constexpr int kMaxNormRuns = 64;

/// Fewest products of one slice of a weight gradient's sum.
inline constexpr std::int64_t kLeastProductsPerSlice = 64;

}  // namespace sweep::cuda
