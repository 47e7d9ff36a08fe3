// Integer division by a number that is known before the kernel starts.
#pragma once

#include <bit>
#include <cstdint>

#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// GPUs have no instruction for integer division; the compiler needs twenty or more. Divisor needs a
/// multiplication and a shift. Granlund and Montgomery, "Division by Invariant Integers using Multiplication"
/// (1994).
class Divisor {
 public:
  Divisor() = default;
  /// `divisor` >= 1.
  explicit Divisor(int divisor) : divisor_(divisor) {
    // q = ⌊n · m / 2^p⌋ with m = ⌈2^p / d⌉ is exact for all n < 2^31 if d <= 2^(p − 31), because the error
    // n · (m · d − 2^p) then stays below 2^p.
    shift_ = 31 + static_cast<int>(std::bit_width(static_cast<unsigned>(divisor - 1)));
    multiplier_ = static_cast<std::uint32_t>(
        ((std::uint64_t{1} << shift_) + static_cast<unsigned>(divisor) - 1) / static_cast<unsigned>(divisor));
  }

  struct Result {
    int quotient, remainder;
  };
  /// n >= 0.
  __host__ __device__ Result divide(int n) const {
    const auto quotient = static_cast<int>((static_cast<std::uint64_t>(n) * multiplier_) >> shift_);
    return {quotient, n - quotient * divisor_};
  }

 private:
  int divisor_ = 1;
  std::uint32_t multiplier_ = std::uint32_t{1} << 31;
  int shift_ = 31;
};

}  // namespace sweep::cuda
