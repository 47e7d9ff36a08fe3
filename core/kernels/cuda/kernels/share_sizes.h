// The shares of a batch that are computed apart, next to each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sweep::cuda {

/// Where the first of `count` nearly equal runs of `samples` begins; the end for run `count`.
constexpr std::size_t run_begin(std::size_t samples, int count, int run) {
  return samples * static_cast<std::size_t>(run) / static_cast<std::size_t>(count);
}

struct ShareSizes {
  int count = 1;            // of shares
  std::int64_t images = 0;  // of all of them

  /// Images of a share; 0 of an empty one.
  constexpr int of(int share) const {
    const auto all = static_cast<std::size_t>(images);
    return static_cast<int>(run_begin(all, count, share + 1) - run_begin(all, count, share));
  }
};

}  // namespace sweep::cuda
