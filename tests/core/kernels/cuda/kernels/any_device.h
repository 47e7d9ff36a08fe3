// What tests of kernels do on the stand-in and on a GPU alike, and shapes of fused convolutions.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "tests/support/test.h"
#if defined(SWEEP_CUDA_ON_HOST)
#include "tests/cudart/grid.h"
#include "tests/cudart/machine.h"
#endif

namespace sweep::test {

/// Calls check() with threads and blocks in three orders, or once on a GPU, which has its own order.
template <class Check>
void in_every_order(const Check& check) {
#if defined(SWEEP_CUDA_ON_HOST)
  using cuda::cudart::Order;
  for (const Order order : {Order::kForward, Order::kBackward, Order::kRandom}) {
    cuda::cudart::set_order(order, 5);
    check();
  }
  cuda::cudart::set_order(Order::kForward);
#else
  check();
#endif
}

/// Kernels that run between its construction and an expect(). Nobody counts them on a GPU.
class KernelCount {
 public:
#if defined(SWEEP_CUDA_ON_HOST)
  void expect(int kernels) const { EXPECT_EQ(cuda::cudart::kernels_run() - before_, kernels); }

 private:
  const int before_ = cuda::cudart::kernels_run();
#else
  void expect(int /*kernels*/) const {}
#endif
};

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
