// The grids of one training step, with what they ask of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/kernels/cuda/host/access_count.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// A grid, and the name of its kernel; see name_of_kernel().
struct CountedGrid {
  std::string kernel;
  host::GridCounts counts;
};

/// Trains a step of `images` samples of noise in 10 classes with Adam, after a small one, on the stand-in
/// with built-in kernels, and returns its grids in their order. `most_accesses`: as of AccessCount.
std::vector<CountedGrid> count_step(const Network& network, std::size_t images, std::uint64_t most_accesses);

}  // namespace sweep::cuda
