// What tests of kernels do on the stand-in and on a GPU alike.
#pragma once

#if defined(SWEEP_CUDA_ON_HOST)
#include "tests/cudart/grid.h"
#include "tests/cudart/machine.h"
#include "tests/support/test.h"
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

}  // namespace sweep::test
