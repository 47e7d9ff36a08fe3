// The weight gradient of one fused convolution, in the backward kernel of conv_pool.h.
//
// A thread adds up the gradients of one kernel row (output channel, input channel, ky), for all images of its
// block, in registers. For each pooled output of the channel it reads the gradient and where the maximum's
// input window begins, then the row's inputs: per output 2 + kernel_width words of shared memory and
// kernel_width multiplications. If there are several times as many threads as rows, each part of the threads
// has a part of the pooled positions, and the sums of all slices are added up in order at the end.
//
// Banks: kernel row r of an output channel, over all input channels, reads at row_stride · r + const from one
// image row on, because planes are kernel_height rows apart modulo the banks (weight_gradient_image()).
// Strides are odd, so the 32 rows of a warp are in 32 banks, as long as their maxima are at the same
// position. The threads of an output channel therefore fill whole warps where that costs no slice.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool_image.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {

/// The gradient of a pooled output, and where the input window of its maximum begins: floats from the start
/// of a channel of the PaddedImage. 0 after a dead relu.
struct alignas(8) WindowGradient {
  float value;
  int input;
};

/// How the input of a convolution lies in shared memory, without conflicts of banks for the weight gradient.
inline PaddedImage weight_gradient_image(const ConvPoolShape& s) {
  const int row_stride = s.padded_width() | 1, plane = s.padded_height() * row_stride;
  const int wanted = s.kernel_height * row_stride % kBanks,
            missing = (wanted - plane % kBanks + kBanks) % kBanks;
  return {s, row_stride, plane + missing};
}

/// How the threads divide the kernel rows: [slices][out_channels][channel_threads]; the first channel_rows of
/// each channel have one.
struct WeightGradientThreads {
  WeightGradientThreads() = default;
  explicit WeightGradientThreads(const ConvPoolShape& s)
      : channel_rows(s.in_channels * s.kernel_height), channel_threads(round_up(channel_rows, kWarpThreads)) {
    const int all_rows = s.out_channels * channel_rows;
    threads = all_rows <= kConvBackwardThreads ? kConvBackwardThreads : kWideConvBackwardThreads;
    const int positions = s.pool_height * s.pool_width;
    const int dense_slices = threads / round_up(all_rows, kWarpThreads);
    if (threads / (s.out_channels * channel_threads) < dense_slices) channel_threads = channel_rows;
    slice_threads = round_up(s.out_channels * channel_threads, kWarpThreads);
    slice_positions = round_up(ceil_div(positions, dense_slices), kWindowsAtOnce);
    slices = ceil_div(positions, slice_positions);
    window_stride = slices * slice_positions | 1;
  }

  int channel_rows, channel_threads;
  int threads;        // of the block, at least
  int slice_threads;  // whole warps, so that a warp works at one pooled position
  int slices;

  int slice_positions;  // pooled positions of a slice, a multiple of kWindowsAtOnce; some of the last may not
                        // exist
  // WindowGradients from an output channel to the next, zeros at the end. Odd, so that threads of different
  // channels read different banks.
  int window_stride;

  constexpr int window_floats(const ConvPoolShape& s) const { return 2 * s.out_channels * window_stride; }
  /// Floats of the sums that slices leave to each other in shared memory.
  int sum_floats(const ConvPoolShape& s) const { return slices > 1 ? slices * s.gradient_floats() : 0; }
};

/// One thread's kernel row. kKernel: the kernel's width, so that loops are unrolled.
template <int kKernel>
class KernelRowGradient {
 public:
  /// image, windows: where the convolution's input and the WindowGradients of its outputs lie, in floats of
  /// the block's shared memory.
  __device__ KernelRowGradient(const ConvPoolShape& s, const PaddedImage& layout,
                               const WeightGradientThreads& threads, int image, int windows)
      : inputs_(image), windows_(windows) {
    // Threads without a row add up the last one of their channel once more: they read what others read.
    Row row(s, threads);
    const auto at_most = [](int& number, int count) { number = number < count ? number : count - 1; };
    at_most(row.slice, threads.slices);
    at_most(row.channel, s.out_channels);
    at_most(row.number, threads.channel_rows);
    const int in_channel = row.number / s.kernel_height, ky = row.number - in_channel * s.kernel_height;
    inputs_ = image + in_channel * layout.plane_stride + ky * layout.row_stride;
    windows_ = windows + 2 * (row.channel * threads.window_stride + row.slice * threads.slice_positions);
  }

  /// Adds the image that lies in shared memory.
  __device__ void add_image(const WeightGradientThreads& threads, const float* shared) {
    if (static_cast<int>(threadIdx.x) >= threads.slices * threads.slice_threads) return;
    const float* row = shared + inputs_;
    const auto* windows = reinterpret_cast<const WindowGradient*>(shared + windows_);
    for (int left = threads.slice_positions; left > 0; left -= kWindowsAtOnce, windows += kWindowsAtOnce) {
      for (int n = 0; n < kWindowsAtOnce; ++n) add_window(row, windows[n]);
    }
  }

  /// Writes the gradient of the block's images to `gradient` [gradient_floats()], after the last image. All
  /// threads call it; `sums`: threads.sum_floats() of shared memory, which others may use up to now.
  __device__ void write(const ConvPoolShape& s, const WeightGradientThreads& threads, float* sums,
                        float* gradient) const {
    const Row row(s, threads);
    const int floats = s.gradient_floats();
    __syncthreads();
    if (row.exists) {
      float* to = threads.slices > 1 ? sums + row.slice * floats : gradient;
      for (int kx = 0; kx < kKernel; ++kx)
        to[(row.channel * threads.channel_rows + row.number) * kKernel + kx] = weights_[kx];
      // Every row of an output channel has added up the channel's bias gradient.
      if (s.bias && row.number == 0) to[s.weights() + row.channel] = bias_;
    }
    if (threads.slices == 1) return;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x)) {
      float sum = sums[i];
      SWEEP_ROLLED
      for (int slice = 1; slice < threads.slices; ++slice) sum += sums[slice * floats + i];
      gradient[i] = sum;
    }
  }

 private:
  // Which row the thread has.
  struct Row {
    __device__ Row(const ConvPoolShape& s, const WeightGradientThreads& threads)
        : slice(static_cast<int>(threadIdx.x) / threads.slice_threads) {
      const int thread = static_cast<int>(threadIdx.x) - slice * threads.slice_threads;
      channel = thread / threads.channel_threads;
      number = thread - channel * threads.channel_threads;
      exists = slice < threads.slices && channel < s.out_channels && number < threads.channel_rows;
    }
    int slice, channel, number;
    bool exists;
  };

  float weights_[kKernel] = {};
  float bias_ = 0.0f;
  __device__ void add_window(const float* row, const WindowGradient& gradient) {
    const float* inputs = row + gradient.input;
    for (int kx = 0; kx < kKernel; ++kx) weights_[kx] += gradient.value * inputs[kx];
    bias_ += gradient.value;
  }

  // Where the row's inputs and the slice's WindowGradients begin, in floats of shared memory.
  int inputs_, windows_;
};

}  // namespace sweep::cuda
