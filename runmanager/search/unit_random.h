// Random numbers in double precision.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/random.h"

namespace sweep {

/// What a trial's random numbers are for, so that each use has its own.
enum class SearchDraw : std::uint32_t { kStart, kPoint, kCandidate, kCopy };

/// The numbers of (seed, trial, use). Not thread-safe.
class UnitRandom {
 public:
  UnitRandom(std::uint64_t seed, std::size_t trial, SearchDraw use)
      : stream_(seed, RandomUse::kSearch, static_cast<std::uint32_t>(trial),
                static_cast<std::uint32_t>(use)) {}

  /// Uniform in (0, 1), 52 bits.
  double unit() {
    const auto high = static_cast<std::uint64_t>(stream_.next_u32() >> 6),
               low = std::uint64_t{stream_.next_u32() >> 6};
    return (static_cast<double>(high << 26 | low) + 0.5) * 0x1p-52;
  }

  /// Uniform in [0, bound), 1 <= bound < 2^32.
  std::size_t below(std::size_t bound) { return stream_.below(static_cast<std::uint32_t>(bound)); }

  /// A number of mean 0 and deviation 1: the polar method of Marsaglia and Bray.
  double normal() {
    double x, y, square;
    do {
      x = 2 * unit() - 1;
      y = 2 * unit() - 1;
      square = x * x + y * y;
    } while (square >= 1);
    return x * std::sqrt(-2 * std::log(square) / square);
  }

 private:
  RandomStream stream_;
};

}  // namespace sweep
