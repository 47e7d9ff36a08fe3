// Scratch memory of conv_pool_backward(), the same for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cpu/kernels/conv_pool_backward.h"

namespace sweep::cpu {

// The part of the input that one output position sees, as runs of floats in an image's array: `runs` runs of
// run_floats floats, run_stride floats apart.
struct Patch {
  std::size_t runs, run_floats, run_stride;
};

// The list of an output channel's nonzero gradients: their values, and where their patches start in the
// images' arrays, in floats.
struct NonZeros {
  const float* values;
  const std::int32_t* offsets;
  std::size_t count;
};

// The part of a block that one list covers, so that its patches stay in the L1 cache.
struct CacheBlock {
  std::size_t lanes, rows;  // images; rows of pooling windows
};

inline constexpr std::size_t kL1Floats = 32 * 1024 / sizeof(float);
inline constexpr std::size_t kSlack = kLanes;  // whole vectors are read and written beyond the ends of arrays

// Floats of one NonZeros per output channel.
inline std::size_t nonzeros_floats(const ConvGeometry& g) {
  return round_up_to_cache_line(g.out_channels * sizeof(NonZeros) / sizeof(float) + 1);
}

}  // namespace sweep::cpu
