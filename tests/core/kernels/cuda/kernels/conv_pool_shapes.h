// Shapes of fused convolutions, for tests.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "tests/support/test.h"

namespace sweep::test {

struct Extents {
  int height, width;
};

constexpr cuda::ConvPoolShape conv_pool_shape(int in_channels, Extents in, int out_channels, Extents kernel,
                                              Extents pad = {0, 0}, bool bias = true) {
  return {.in_channels = in_channels,
          .in_height = in.height,
          .in_width = in.width,
          .out_channels = out_channels,
          .pool_height = (in.height + 2 * pad.height - kernel.height + 1) / 2,
          .pool_width = (in.width + 2 * pad.width - kernel.width + 1) / 2,
          .kernel_height = kernel.height,
          .kernel_width = kernel.width,
          .pad_y = pad.height,
          .pad_x = pad.width,
          .bias = bias};
}

}  // namespace sweep::test
