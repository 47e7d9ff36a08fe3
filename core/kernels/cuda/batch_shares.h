// How a batch is cut: into turns, one after another, and each turn into shares, whichever devices compute
// them. Functions of the batch and the options, because they decide the order of additions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/engine/engine.h"
#include "core/kernels/cuda/kernels/share_sizes.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {

/// Each share is a pass of its own, whose gradient and totals are kept apart, so that bits do not depend on
/// who computes it.
struct BatchShares {
  int turns = 1;           // EngineOptions::accumulation_steps, but at most the samples of the largest batch
  int count = 1;           // shares of a turn: kBatchShares if devices share it
  int first = 0, end = 1;  // those of each turn that this device computes
  int most = 1;            // those of the device that computes most

  bool is_whole() const { return turns == 1 && count == 1; }
};

inline int turns_of(const EngineOptions& options) {
  return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(options.accumulation_steps),
                                                std::max<std::size_t>(options.batch_size, 1)));
}

/// Samples of a batch, [begin, end).
struct SampleRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// The samples of a turn. Empty if the batch has fewer than there are turns.
inline SampleRange samples_of_turn(std::size_t samples, const BatchShares& shares, int turn) {
  return {run_begin(samples, shares.turns, turn), run_begin(samples, shares.turns, turn + 1)};
}

/// The samples of shares [first, end) of a turn; they may be none.
inline SampleRange samples_of_shares(std::size_t samples, const BatchShares& shares, int turn, int first,
                                     int end) {
  const SampleRange all = samples_of_turn(samples, shares, turn);
  return {all.begin + run_begin(all.size(), shares.count, first),
          all.begin + run_begin(all.size(), shares.count, end)};
}

/// The samples that the device has of the turns before `turn`.
inline std::size_t own_samples_before(std::size_t samples, const BatchShares& shares, int turn) {
  std::size_t before = 0;
  for (int earlier = 0; earlier < turn; ++earlier)
    before += samples_of_shares(samples, shares, earlier, shares.first, shares.end).size();
  return before;
}

/// The most samples of a share, for batches of up to `samples`.
inline std::size_t largest_share(std::size_t samples, const BatchShares& shares) {
  const auto per = [](std::size_t all, int count) {
    return (all + static_cast<std::size_t>(count) - 1) / static_cast<std::size_t>(count);
  };
  return std::max<std::size_t>(1, per(per(samples, shares.turns), shares.count));
}

/// For all shares of a turn.
inline ShareSizes share_sizes(std::size_t samples, const BatchShares& shares, int turn) {
  const SampleRange all = samples_of_turn(samples, shares, turn);
  return {.count = shares.count, .images = static_cast<std::int64_t>(all.size())};
}

}  // namespace sweep::cuda
