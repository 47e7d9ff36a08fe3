// The parts of a batch that are computed apart, next to each other.
#pragma once

#include <cstdint>

#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {

struct PartSizes {
  int count = 1;                    // <= kGradientParts
  int images[kGradientParts] = {};  // of each part; parts may be empty

  std::int64_t sum() const {
    std::int64_t all = 0;
    for (int part = 0; part < count; ++part) all += images[part];
    return all;
  }
};

}  // namespace sweep::cuda
