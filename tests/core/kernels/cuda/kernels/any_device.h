// What tests of kernels do on the stand-in and on a GPU alike.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/environment.h"
#if defined(SWEEP_CUDA_ON_HOST)
#include "tests/cudart/grid.h"
#include "tests/cudart/machine.h"
#endif

namespace sweep::test {

/// Calls check() with threads and blocks in three orders. On a GPU, which has its own order, calls it with
/// and without kernels that overlap.
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
  for (const char* overlap : {"0", "1"}) {
    const Environment variable("SWEEP_CUDA_OVERLAP", overlap);
    check();
  }
#endif
}

/// Kernels that run between its construction and an expect(). Nobody counts them on a GPU.
class KernelCount {
 public:
#if defined(SWEEP_CUDA_ON_HOST)
  void expect(int kernels) const { EXPECT_EQ(cuda::cudart::kernels_run() - before_, kernels); }
  void expect_overlap() const { EXPECT_GT(cuda::cudart::kernels_overlapped(), overlapped_before_); }

 private:
  const int before_ = cuda::cudart::kernels_run(), overlapped_before_ = cuda::cudart::kernels_overlapped();
#else
  void expect(int /*kernels*/) const {}
  void expect_overlap() const {}
#endif
};

}  // namespace sweep::test
