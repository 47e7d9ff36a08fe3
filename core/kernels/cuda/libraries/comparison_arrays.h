// Random device arrays for comparing built-in kernels with a library's.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// RandomArray in [-1, 1) on the device: some from the host, and those again and again.
class RandomArray {
 public:
  RandomArray(Stream& stream, std::size_t count, std::uint64_t seed)
      : array_(count, "the choice of kernels") {
    constexpr std::size_t kDrawn = 1 << 16;
    RandomStream random(seed, RandomUse::kSearch);
    std::vector<float> values(std::min(count, kDrawn));
    for (float& value : values) value = random.uniform(-1, 1);
    stream.upload(array_.data(), values.data(), values.size() * sizeof(float));
    for (std::size_t done = values.size(); done < count;) {
      const std::size_t more = std::min(done, count - done);
      stream.copy(array_.data() + done, array_.data(), more * sizeof(float));
      done += more;
    }
  }
  float* data() const { return array_.data(); }

 private:
  Array<float> array_;
};

/// Whether no difference exceeds a thousandth of the largest element. Sums in another order and transforms
/// (Winograd, FFT) stay within that; wrong results do not.
inline bool nearly_equal(const std::vector<float>& builtin, const std::vector<float>& library) {
  constexpr float kTolerance = 1e-3f;
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < builtin.size(); ++i) {
    if (!std::isfinite(builtin[i]) || !std::isfinite(library[i])) return false;
    largest = std::max(largest, std::abs(builtin[i]));
    difference = std::max(difference, std::abs(builtin[i] - library[i]));
  }
  return difference <= kTolerance * largest;
}

}  // namespace sweep::cuda
