// How a batch is cut: blocks, partial sums, turns. Functions of the batch, the network and the options, never
// of threads or devices, because they decide the order of additions.
#pragma once

#include <cstddef>

#include "core/engine/engine.h"
#include "core/kernels/cpu/partial_shares.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/network/network.h"

namespace sweep::cpu {

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
