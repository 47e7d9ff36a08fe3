// Counts the values of many arrays in buckets on the device, so that histograms of them need no copy of the
// values.
#pragma once

#include <span>
#include <vector>

#include "core/kernels/cuda/runtime/runtime.h"
#include "core/spec/value_counts.h"

namespace sweep::cuda {

/// Floats of the device's memory.
struct CountedArray {
  const float* values;
  int count;
};

/// Limits that a ValueCounter takes at most: a block's counters have to fit into its shared memory.
inline constexpr std::size_t kMaxLimits = 8192;

class ValueCounter {
 public:
  /// The arrays have to outlive it. `limits` grow and are kMaxLimits at most, else ConfigError.
  ValueCounter(Stream& stream, const std::vector<CountedArray>& arrays, std::span<const double> limits);

  /// The limits it was made with.
  const std::vector<double>& limits() const { return limits_; }

  /// What is in the arrays after the stream's work so far: one entry for each. The bits are the same every
  /// time; sums depend on nothing but the values and their order in the array. One copy to the host.
  std::vector<ValueCounts> count(Stream& stream) const;

 private:
  friend struct ValueCounterKernels;
  struct Work;     // what one block counts
  struct Moments;  // extremes and sums

  std::vector<double> limits_;
  std::vector<int> counts_;  // of each array
  Array<CountedArray> arrays_;
  Array<Work> works_;
  Array<int> first_works_;  // of each array, and the end of the last
  Array<float> device_limits_;
  Array<Moments> block_moments_;
  Array<std::byte> result_;  // [arrays] Moments, then [arrays][buckets] counters of 32 bits
};

}  // namespace sweep::cuda
