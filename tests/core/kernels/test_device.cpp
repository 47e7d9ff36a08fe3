#include "tests/core/kernels/test_device.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sweep::test {
namespace {

std::string asked_for() {
  const char* value = std::getenv("SWEEP_TEST_DEVICE");
  return value == nullptr ? "cpu" : value;
}

class NeedsTheDevice : public testing::Environment {
 public:
  void SetUp() override {
    if (const auto reason = unavailable_reason(device()))
      GTEST_SKIP() << "no test can run on " << device().name() << ": " << *reason;
  }
};

const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new NeedsTheDevice);

}  // namespace

Device device() { return parse_device(device_is_stand_in() ? "cuda" : asked_for()); }

bool device_is_stand_in() { return asked_for() == "cuda-on-host"; }

}  // namespace sweep::test
