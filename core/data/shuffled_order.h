// The order in which a shuffled epoch visits its samples.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sweep {

/// Returns the order in which an epoch visits `count` samples (at most 2^32 − 1): a uniformly random
/// permutation of 0 … count − 1 that depends only on the arguments, so it is the same on every device and for
/// every number of workers. Thread-safe.
std::vector<std::uint32_t> shuffled_order(std::size_t count, std::uint64_t seed, std::uint32_t repeat,
                                          std::uint32_t epoch);

/// Permutes `values` so: element i becomes values[shuffled_order(…)[i]]. Once `abandoned` is true, another
/// thread may set it, it returns within a millisecond and leaves any permutation.
void shuffle(std::span<std::uint32_t> values, std::uint64_t seed, std::uint32_t repeat, std::uint32_t epoch,
             const std::atomic<bool>& abandoned);

}  // namespace sweep
