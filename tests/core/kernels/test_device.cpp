#include "tests/core/kernels/test_device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace sweep::test {
namespace {

#if defined(SWEEP_CUDA_ON_HOST)
constexpr bool kStandIn = true;
#else
constexpr bool kStandIn = false;
#endif

class NeedsTheDevice : public testing::Environment {
 public:
  void SetUp() override {
    const auto reason = unavailable_reason(device());
    if (!reason) return;
    // GoogleTest counts tests that an environment skips as passed; CTest goes by these words.
    std::cout << "[  SKIPPED ] all tests\n";
    GTEST_SKIP() << "no test can run on " << device().name() << ": " << *reason;
  }
};

const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new NeedsTheDevice);

}  // namespace

Device device() {
  const char* value = std::getenv("SWEEP_TEST_DEVICE");
  return parse_device(value != nullptr ? value : kStandIn ? "cuda" : "cpu");
}

bool device_is_stand_in() { return kStandIn; }

}  // namespace sweep::test
