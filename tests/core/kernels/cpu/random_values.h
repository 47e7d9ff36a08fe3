// Input for tests of kernels.
#pragma once

#include <cstddef>
#include <random>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::test {

/// Normal numbers, the same for the same seed.
inline cpu::AlignedBuffer random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  cpu::AlignedBuffer values(count);
  for (std::size_t i = 0; i < count; ++i) values.data()[i] = normal(random);
  return values;
}

}  // namespace sweep::test
