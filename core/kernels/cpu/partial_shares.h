// How a batch is cut: blocks, partial sums, turns; and which device computes which of the partial sums.
//
// A batch has a number of partial sums that depends on the batch and the network alone, never on threads or
// devices, because it decides the order of additions. They are trained in turns
// (EngineOptions::accumulation_steps), and in each turn shared among the devices: consecutive ranges, nearly
// equal. If a range may end at several places, it ends where the fewest subtrees of GradientSum are cut.
#pragma once

#include <cstddef>

#include "core/engine/engine.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/network/network.h"
#include "core/parallel/replicated_engine.h"

namespace sweep::cpu {

/// One of several devices that train together. Rank 0 of 1: the only one.
struct DevicePlace {
  std::size_t rank = 0, count = 1;
};

/// Partial sums or blocks, [begin, end).
struct IndexRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// Shares out `partials` in `turns` >= 1, or in as many as there are partial sums, over `devices` >= 1. Keeps
/// the memory of `shares`.
void share_out(std::size_t partials, std::size_t turns, std::size_t devices, RankShares& shares);

/// The partial sums of a turn, and what a device has of them: consecutive ranges, which may be empty.
inline IndexRange range_of(const RankShares& shares, std::size_t turn) {
  return {shares.of(turn).front(), shares.of(turn).back()};
}
inline IndexRange range_of(const RankShares& shares, std::size_t turn, std::size_t device) {
  return {shares.of(turn)[device], shares.of(turn)[device + 1]};
}

inline std::size_t block_count(std::size_t images) { return (images + kLanes - 1) / kLanes; }

/// The number of partial sums of the gradient of a batch of `blocks`, >= 1.
std::size_t partial_count(const Network& network, const Program& program, std::size_t blocks);

/// Turns in which the partial sums of a batch are trained, as far as there are so many.
std::size_t turns_of(const EngineOptions& options, const Program& program);

/// The blocks of some of `parts` nearly equal runs.
inline IndexRange blocks_of(std::size_t blocks, std::size_t parts, const IndexRange& range) {
  return {part_begin(blocks, parts, range.begin), part_begin(blocks, parts, range.end)};
}

/// The most blocks that a device trains in one turn, for any batch of up to `max_blocks`.
std::size_t most_blocks_at_once(const Network& network, const Program& program, std::size_t max_blocks,
                                std::size_t turns, DevicePlace place);

}  // namespace sweep::cpu
