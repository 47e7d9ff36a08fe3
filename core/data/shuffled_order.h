// The order in which a shuffled epoch visits its samples.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace sweep {

/// Shuffles `values`: element i becomes values[shuffled_order(…)[i]]. If another thread sets `abandoned`,
/// returns within a millisecond, leaving them in any order.
inline void shuffle(std::span<std::uint32_t> values, std::uint64_t seed, std::uint32_t repeat,
                    std::uint32_t epoch, const std::atomic<bool>& abandoned) {
  constexpr std::size_t kSwapsPerLook = 1 << 14;
  RandomStream random(seed, RandomUse::kShuffle, epoch, repeat);
  for (std::size_t i = values.size(); i > 1; --i) {  // Fisher-Yates
    if (i % kSwapsPerLook == 0 && abandoned) return;
    std::swap(values[i - 1], values[random.below(static_cast<std::uint32_t>(i))]);
  }
}

/// Returns the order in which an epoch visits `count` samples (at most 2^32 − 1): a uniformly random
/// permutation of 0 … count − 1 that depends only on the arguments, so it is the same on every device and for
/// every number of workers. Thread-safe.
inline std::vector<std::uint32_t> shuffled_order(std::size_t count, std::uint64_t seed, std::uint32_t repeat,
                                                 std::uint32_t epoch) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order, seed, repeat, epoch, std::atomic<bool>(false));
  return order;
}

}  // namespace sweep
