// The gradient of the input of one fused convolution, in the backward kernel of conv_pool.h.
//
// First every pooled output is spread over the input that its four windows cover (spread_windows()): a thread
// takes two pooled positions and one kernel row (input channel, ky), and adds up over the output channels, in
// registers, what the row adds to the kernel_width + 1 columns under the windows, separately for their
// upper and lower row. It multiplies all four windows, three of which have the gradient zero: so neither
// addresses nor branches depend on where the maxima are, and each weight read serves eight products. Then
// every input collects the sums that cover it (collect()). Nothing is added to in memory, so no atomics.
// Input channels are taken in groups if the sums of all would need too much shared memory.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool_weight_gradient.h"

namespace sweep::cuda {

/// How the sums of the first part lie in shared memory: [pooled positions][group_rows][upper, lower row of
/// the windows][columns].
struct InputGradientSums {
  InputGradientSums() = default;
  explicit InputGradientSums(const ConvPoolShape& s)
      : columns(round_up(s.kernel_width + 1, 2)),
        pairs(ceil_div(s.pool_height * s.pool_width, 2)),
        column_pairs(ceil_div(s.padded_width(), 2)) {
    const int channel_floats = s.pool_height * s.pool_width * s.kernel_height * 2 * columns;
    group_channels = kMaxFloats / channel_floats;
    group_channels = group_channels < 1 ? 1 : group_channels < s.in_channels ? group_channels : s.in_channels;
    group_rows = group_channels * s.kernel_height;
    // Whole warps if that wastes few threads: a warp then reads the gradients of one pair.
    row_threads = group_rows > kWarpThreads / 2 && group_rows <= kWarpThreads ? kWarpThreads : group_rows;
    position_stride = round_up(group_rows * 2 * columns, 4) + 4;
    by_row_threads = Divisor(row_threads);
    by_column_pair = Divisor(column_pairs);
    by_height = Divisor(s.in_height);
  }

  int columns;                     // an even number
  int pairs;                       // of pooled positions
  int column_pairs;                // of the padded input
  int group_channels, group_rows;  // input channels at a time, and their kernel rows
  int row_threads;                 // threads per pair of positions
  int position_stride;  // floats from a pooled position to the next: four of padding spread them over the
                        // banks
  Divisor by_row_threads, by_column_pair, by_height;

  /// Elements from one output channel's windows to the next's. The last pair may have only one position.
  constexpr int window_stride() const { return 2 * pairs; }
  constexpr int window_floats(const ConvPoolShape& s) const { return 4 * s.out_channels * window_stride(); }
  int floats() const { return 2 * pairs * position_stride; }

 private:
  static constexpr int kMaxFloats = 6 << 10;  // two blocks on a multiprocessor; the 6 channels of a LeNet
};

/// The first part, for input channels first_channel … of a group. weights: as in device memory. windows
/// [out_channels][window_stride()]: the gradients of the four windows (upper left, upper right, lower left,
/// lower right) of a pooled output. sums: as InputGradientSums says. kKernel: the kernel's width and height.
/// kThreadCount: of the block.
template <int kKernel, int kThreadCount>
__device__ void spread_windows(const ConvPoolShape& s, const InputGradientSums& layout, int first_channel,
                               const float* weights, const float4* windows, float* sums) {
  constexpr int kRow = kKernel + 1;  // layout.columns
  static_assert(kRow % 2 == 0, "rows of sums are float4");
  const int last_row = (s.in_channels - first_channel) * kKernel;
  const int rows = layout.group_rows < last_row ? layout.group_rows : last_row;
  const int taps = s.in_channels * kKernel * kKernel;
  // Backwards: the last warps have no rows in the weight gradient, if any.
  for (int task = kThreadCount - 1 - static_cast<int>(threadIdx.x); task < layout.pairs * layout.row_threads;
       task += kThreadCount) {
    const auto [pair, row] = layout.by_row_threads.divide(task);
    if (row >= rows) continue;
    const int position = 2 * pair;

    const float* weight = weights + (first_channel * kKernel + row) * kKernel;
    const float4* window = windows + position;
    float* to = sums + position * layout.position_stride + row * 2 * layout.columns;
    float both_sums[2][2 * kRow] = {};  // [position][upper, lower row][column]
    for (int o = 0; o < s.out_channels; ++o) {
      const float4 gradients[2] = {window[0], window[1]};
      for (int kx = 0; kx < kKernel; ++kx) {
        const float w = weight[kx];
        for (int p = 0; p < 2; ++p) {
          both_sums[p][kx] += gradients[p].x * w;
          both_sums[p][kx + 1] += gradients[p].y * w;
          both_sums[p][kRow + kx] += gradients[p].z * w;
          both_sums[p][kRow + kx + 1] += gradients[p].w * w;
        }
      }
      weight += taps;
      window += layout.window_stride();
    }
    for (int p = 0; p < 2; ++p, to += layout.position_stride) {
      const float* from = both_sums[p];
      for (int i = 0; i < 2 * kRow; i += 4)
        *reinterpret_cast<float4*>(to + i) = {from[i], from[i + 1], from[i + 2], from[i + 3]};
    }
  }
}

/// The second part: calls take(channel, y, x, gradient) for every input of the group. It adds up the pooled
/// positions whose windows cover the input, from the lowest row to the highest, each from right to left.
/// zeros: two zeros in shared memory.
template <int kKernel, int kThreadCount, class Take>
__device__ void collect(const ConvPoolShape& s, const InputGradientSums& layout, int first_channel,
                        const float* sums, const float* zeros, const Take& take) {
  constexpr int kColumns = kKernel + 1;
  const int last_channel = s.in_channels - first_channel;
  const int channels = layout.group_channels < last_channel ? layout.group_channels : last_channel;
  for (int task = static_cast<int>(threadIdx.x); task < channels * s.in_height * layout.column_pairs;
       task += kThreadCount) {
    const auto [channel_and_y, column_pair] = layout.by_column_pair.divide(task);
    const auto [channel, y] = layout.by_height.divide(channel_and_y);
    const int pool_y = (y + s.pad_y) / 2, odd = (y + s.pad_y) % 2;
    // Row `odd` of the kernel and the upper row of the windows at (pool_y, column_pair). One pooled position
    // up means two kernel rows more; the windows' lower row meets the kernel row before.
    const float* position = sums + (pool_y * s.pool_width + column_pair) * layout.position_stride +
                            (channel * kKernel + odd) * 2 * kColumns;
    FloatPair sum{0.0f, 0.0f};
    // What does not exist is read as zero, so that there are no branches.
    const auto add = [&](bool exists, const float* from) {
      const auto more = *reinterpret_cast<const FloatPair*>(exists ? from : zeros);
      sum.x += more.x;
      sum.y += more.y;
    };
    for (int up = 0; up <= kKernel / 2; ++up) {
      const int ky = odd + 2 * up;
      const bool row = pool_y - up >= 0 && pool_y - up < s.pool_height;
      for (int left = 0; left < kColumns / 2; ++left) {
        const bool covers = row && column_pair - left >= 0 && column_pair - left < s.pool_width;
        const float* upper = position - left * layout.position_stride + 4 * up * kColumns + 2 * left;
        add(covers && ky < kKernel, upper);
        add(covers && ky > 0 && ky <= kKernel, upper - kColumns);
      }
      position -= s.pool_width * layout.position_stride;
    }
    const int x = 2 * column_pair - s.pad_x;
    if (x >= 0 && x < s.in_width) take(first_channel + channel, y, x, sum.x);
    if (x + 1 >= 0 && x + 1 < s.in_width) take(first_channel + channel, y, x + 1, sum.y);
  }
}

}  // namespace sweep::cuda
