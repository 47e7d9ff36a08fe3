#include "core/kernels/cuda/kernels/value_counter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

struct ValueCounter::Chunk {
  int array, first, count;
};

// Without default member initialisers: block_sum() has it in shared memory, where constructors do not run.
struct ValueCounter::Moments {
  double sum, squares;  // of all values
  float min, max;       // of the finite values; infinite, the wrong way round, if there are none

  __device__ Moments& operator+=(const Moments& other) {
    sum += other.sum;
    squares += other.squares;
    min = other.min < min ? other.min : min;
    max = other.max > max ? other.max : max;
    return *this;
  }
};

struct ValueCounterKernels {
  using Chunk = ValueCounter::Chunk;
  using Moments = ValueCounter::Moments;

  static __device__ Moments none() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return {0, 0, kInfinity, -kInfinity};
  }

  // How many of `limits` are not greater than `value`.
  static __device__ int bucket_of(float value, const float* limits, int limit_count) {
    int low = 0, high = limit_count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (limits[middle] <= value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

namespace {

using Kernels = ValueCounterKernels;
using Chunk = Kernels::Chunk;
using Moments = Kernels::Moments;

// Values of a chunk: many more than a block has counters to clear and to add up.
constexpr int kChunkValues = 16384;

// Grid: a block of 256 threads per chunk. It counts in shared memory, where atomics on the same counter are
// cheap (many values of an array fall into one bucket), and adds its counters to the array's at the end.
// Dynamic shared memory: one 32-bit counter per bucket.
__global__ void count_kernel(const CountedArray* arrays, const Chunk* chunks, const float* limits,
                             int limit_count, Moments* block_moments, std::uint32_t* buckets) {
  auto* counters = dynamic_shared<std::uint32_t>();
  const int bucket_count = limit_count + 1;
  for (int b = static_cast<int>(threadIdx.x); b < bucket_count; b += static_cast<int>(kThreads))
    counters[b] = 0;
  __syncthreads();
  const Chunk chunk = chunks[blockIdx.x];
  const float* values = arrays[chunk.array].values + chunk.first;
  Moments moments = Kernels::none();
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += static_cast<int>(kThreads)) {
    const float value = values[i];
    const auto wide = static_cast<double>(value);
    moments.sum += wide;
    moments.squares += wide * wide;
    if (!(fabsf(value) <= std::numeric_limits<float>::max())) continue;
    moments.min = value < moments.min ? value : moments.min;
    moments.max = value > moments.max ? value : moments.max;
    add_atomically(&counters[Kernels::bucket_of(value, limits, limit_count)], 1);
  }
  moments = block_sum(moments);  // has the barrier that the counters need before they are read
  if (threadIdx.x == 0) block_moments[blockIdx.x] = moments;
  std::uint32_t* result = buckets + static_cast<std::ptrdiff_t>(chunk.array) * bucket_count;
  for (int b = static_cast<int>(threadIdx.x); b < bucket_count; b += static_cast<int>(kThreads)) {
    if (counters[b] > 0) add_atomically(&result[b], counters[b]);
  }
}

// Grid: a block of 256 threads per array, which joins the moments of its chunks.
__global__ void moments_kernel(const int* first_chunks, const Moments* block_moments, Moments* moments) {
  const int end = first_chunks[blockIdx.x + 1];
  Moments joined = Kernels::none();
  for (int w = first_chunks[blockIdx.x] + static_cast<int>(threadIdx.x); w < end;
       w += static_cast<int>(kThreads))
    joined += block_moments[w];
  joined = block_sum(joined);
  if (threadIdx.x == 0) moments[blockIdx.x] = joined;
}

// The smallest float that is not less than `limit`: a float is below it exactly if it is below the limit.
float rounded_up(double limit) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (limit > kLargest) return kInfinity;
  if (limit < -kLargest) return -std::numeric_limits<float>::max();
  const auto nearest = static_cast<float>(limit);
  return static_cast<double>(nearest) < limit ? std::nextafter(nearest, kInfinity) : nearest;
}

constexpr const char* kTables = "the tables of histograms";

}  // namespace

ValueCounter::ValueCounter(Stream& stream, const std::vector<CountedArray>& arrays,
                           std::span<const double> limits)
    : limits_(limits.begin(), limits.end()), arrays_(to_device(stream, arrays, kTables)) {
  if (limits.size() > kMaxLimits) {
    throw ConfigError("a histogram on CUDA has at most " + std::to_string(kMaxLimits) + " limits, but got " +
                      std::to_string(limits.size()));
  }
  std::vector<Chunk> chunks;
  std::vector<int> first_chunks;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    counts_.push_back(arrays[a].count);
    first_chunks.push_back(static_cast<int>(chunks.size()));
    for (int first = 0; first < arrays[a].count; first += kChunkValues)
      chunks.push_back({static_cast<int>(a), first, std::min(kChunkValues, arrays[a].count - first)});
  }
  first_chunks.push_back(static_cast<int>(chunks.size()));
  std::vector<float> floats(limits.size());
  std::transform(limits.begin(), limits.end(), floats.begin(), rounded_up);
  chunks_ = to_device(stream, chunks, kTables);
  first_chunks_ = to_device(stream, first_chunks, kTables);
  device_limits_ = to_device(stream, floats, kTables);
  block_moments_ = Array<Moments>(chunks.size(), "the sums of histograms");
  result_ = Array<std::byte>(arrays.size() * (sizeof(Moments) + (limits.size() + 1) * sizeof(std::uint32_t)),
                             "the histograms");
}

std::vector<HistogramCounts> ValueCounter::count(Stream& stream) const {
  const std::size_t arrays = counts_.size(), buckets = limits_.size() + 1;
  if (arrays == 0) return {};
  auto* moments = reinterpret_cast<Moments*>(result_.data());
  auto* counters = reinterpret_cast<std::uint32_t*>(moments + arrays);
  stream.clear(result_.data(), result_.size());
  launch(stream, count_kernel, {static_cast<unsigned>(chunks_.size())},
         {{kThreads}, buckets * sizeof(std::uint32_t)}, arrays_.data(), chunks_.data(), device_limits_.data(),
         static_cast<int>(limits_.size()), block_moments_.data(), counters);
  launch(stream, moments_kernel, {static_cast<unsigned>(arrays)}, {kThreads}, first_chunks_.data(),
         block_moments_.data(), moments);
  std::vector<std::byte> result(result_.size());
  stream.download(result.data(), result_.data(), result.size());

  std::vector<HistogramCounts> all(arrays);
  for (std::size_t a = 0; a < arrays; ++a) {
    HistogramCounts& counts = all[a];
    Moments found;
    std::memcpy(&found, result.data() + a * sizeof found, sizeof found);
    counts.buckets.resize(buckets);
    std::memcpy(counts.buckets.data(),
                result.data() + arrays * sizeof found + a * buckets * sizeof(std::uint32_t),
                buckets * sizeof(std::uint32_t));
    counts.number = counts_[a];
    counts.sum = found.sum;
    counts.sum_squares = found.squares;
    if (found.min > found.max) continue;  // no finite value
    counts.min = static_cast<double>(found.min);
    counts.max = static_cast<double>(found.max);
  }
  return all;
}

}  // namespace sweep::cuda
