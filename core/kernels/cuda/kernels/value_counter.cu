#include "core/kernels/cuda/kernels/value_counter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

struct ValueCounter::Work {
  int array, first, count;
};

// Without initial values, so that it can lie in shared memory.
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
  using Work = ValueCounter::Work;
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
using Work = Kernels::Work;
using Moments = Kernels::Moments;

// Values that a block counts: many more than it has counters to clear and to add up.
constexpr int kShare = 16384;

// A block per work. Its counters are in shared memory at first, where many equal values cost least.
__global__ void count_kernel(const CountedArray* arrays, const Work* works, const float* limits,
                             int limit_count, Moments* block_moments, std::uint32_t* buckets) {
  auto* counters = dynamic_shared<std::uint32_t>();
  const int bucket_count = limit_count + 1;
  for (int b = static_cast<int>(threadIdx.x); b < bucket_count; b += static_cast<int>(kThreads))
    counters[b] = 0;
  __syncthreads();
  const Work work = works[blockIdx.x];
  const float* values = arrays[work.array].values + work.first;
  Moments moments = Kernels::none();
  for (int i = static_cast<int>(threadIdx.x); i < work.count; i += static_cast<int>(kThreads)) {
    const float value = values[i];
    const auto wide = static_cast<double>(value);
    moments.sum += wide;
    moments.squares += wide * wide;
    if (!(fabsf(value) <= std::numeric_limits<float>::max())) continue;
    moments.min = value < moments.min ? value : moments.min;
    moments.max = value > moments.max ? value : moments.max;
    add_atomically(&counters[Kernels::bucket_of(value, limits, limit_count)], 1);
  }
  moments = block_sum(moments);  // its barriers are those that the counters need
  if (threadIdx.x == 0) block_moments[blockIdx.x] = moments;
  std::uint32_t* own = buckets + static_cast<std::ptrdiff_t>(work.array) * bucket_count;
  for (int b = static_cast<int>(threadIdx.x); b < bucket_count; b += static_cast<int>(kThreads)) {
    if (counters[b] > 0) add_atomically(&own[b], counters[b]);
  }
}

// A block per array: adds up what the blocks of its works found.
__global__ void moments_kernel(const int* first_works, const Moments* block_moments, Moments* moments) {
  const int end = first_works[blockIdx.x + 1];
  Moments own = Kernels::none();
  for (int w = first_works[blockIdx.x] + static_cast<int>(threadIdx.x); w < end;
       w += static_cast<int>(kThreads))
    own += block_moments[w];
  own = block_sum(own);
  if (threadIdx.x == 0) moments[blockIdx.x] = own;
}

// The smallest float that is not less than `limit`: floats compare with it as with the limit.
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
  std::vector<Work> works;
  std::vector<int> first_works;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    counts_.push_back(arrays[a].count);
    first_works.push_back(static_cast<int>(works.size()));
    for (int first = 0; first < arrays[a].count; first += kShare)
      works.push_back({static_cast<int>(a), first, std::min(kShare, arrays[a].count - first)});
  }
  first_works.push_back(static_cast<int>(works.size()));
  std::vector<float> floats(limits.size());
  std::transform(limits.begin(), limits.end(), floats.begin(), rounded_up);
  works_ = to_device(stream, works, kTables);
  first_works_ = to_device(stream, first_works, kTables);
  device_limits_ = to_device(stream, floats, kTables);
  block_moments_ = Array<Moments>(works.size(), "the sums of histograms");
  result_ = Array<std::byte>(arrays.size() * (sizeof(Moments) + (limits.size() + 1) * sizeof(std::uint32_t)),
                             "the histograms");
}

std::vector<ValueCounts> ValueCounter::count(Stream& stream) const {
  const std::size_t arrays = counts_.size(), buckets = limits_.size() + 1;
  if (arrays == 0) return {};
  auto* moments = reinterpret_cast<Moments*>(result_.data());
  auto* counters = reinterpret_cast<std::uint32_t*>(moments + arrays);
  stream.clear(result_.data(), result_.size());
  launch(stream, count_kernel, {static_cast<unsigned>(works_.size())},
         {{kThreads}, buckets * sizeof(std::uint32_t)}, arrays_.data(), works_.data(), device_limits_.data(),
         static_cast<int>(limits_.size()), block_moments_.data(), counters);
  launch(stream, moments_kernel, {static_cast<unsigned>(arrays)}, {kThreads}, first_works_.data(),
         block_moments_.data(), moments);
  std::vector<std::byte> result(result_.size());
  stream.download(result.data(), result_.data(), result.size());

  std::vector<ValueCounts> all(arrays);
  for (std::size_t a = 0; a < arrays; ++a) {
    ValueCounts& own = all[a];
    Moments found;
    std::memcpy(&found, result.data() + a * sizeof found, sizeof found);
    own.buckets.resize(buckets);
    std::memcpy(own.buckets.data(),
                result.data() + arrays * sizeof found + a * buckets * sizeof(std::uint32_t),
                buckets * sizeof(std::uint32_t));
    own.number = counts_[a];
    own.sum = found.sum;
    own.sum_squares = found.squares;
    if (found.min > found.max) continue;  // no finite value
    own.min = static_cast<double>(found.min);
    own.max = static_cast<double>(found.max);
  }
  return all;
}

}  // namespace sweep::cuda
