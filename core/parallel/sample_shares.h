// Which samples of a batch the ranks of a group compute. Not part of the installed interface.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sweep {

/// Where each rank's samples begin, and where the last rank's end, for every turn of a batch; see
/// EngineOptions::accumulation_steps. Filled anew for each batch; keeps its memory.
struct SampleShares {
  std::size_t ranks = 1;
  std::vector<std::size_t> begins = {};  // [turns][ranks + 1]

  std::size_t turns() const { return begins.size() / (ranks + 1); }
  /// [ranks + 1]
  std::span<const std::size_t> of(std::size_t turn) const {
    return std::span(begins).subspan(turn * (ranks + 1), ranks + 1);
  }
};

}  // namespace sweep
