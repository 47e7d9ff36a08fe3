// Counts the values of many arrays in buckets on the device, so that histograms do not copy the values to the
// host.
#pragma once

#include <span>
#include <vector>

#include "core/kernels/cuda/runtime/runtime.h"
#include "core/network/histogram_counts.h"

namespace sweep::cuda {

/// Floats in device memory.
struct CountedArray {
  const float* values;
  int count;
};

/// Most limits of a ValueCounter: a block's 32-bit counters have to fit into 48 KiB of shared memory.
inline constexpr std::size_t kMaxLimits = 8192;

class ValueCounter {
 public:
  /// The arrays have to outlive it. `limits`: ascending, at most kMaxLimits, or ConfigError. Bucket i counts
  /// the values from limits[i − 1] on and below limits[i].
  ValueCounter(Stream& stream, const std::vector<CountedArray>& arrays, std::span<const double> limits);

  /// The limits given to the constructor.
  const std::vector<double>& limits() const { return limits_; }

  /// The counts of each array after the stream's work so far. Waits. The bits are the same every time: sums
  /// depend only on the values and their order in the array. One copy to the host for all arrays.
  std::vector<HistogramCounts> count(Stream& stream) const;

 private:
  friend struct ValueCounterKernels;
  struct Chunk;    // what one block counts
  struct Moments;  // extremes and sums of a chunk or an array

  std::vector<double> limits_;
  std::vector<int> counts_;  // of each array
  Array<CountedArray> arrays_;
  Array<Chunk> chunks_;
  Array<int> first_chunks_;  // [arrays + 1]: first chunk of each array, then the end
  Array<float> device_limits_;
  Array<Moments> block_moments_;
  Array<std::byte> result_;  // [arrays] Moments, then [arrays][buckets] counters of 32 bits
};

}  // namespace sweep::cuda
