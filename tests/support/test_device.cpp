#include "tests/support/test_device.h"

#if defined(SWEEP_CUDA_ON_HOST)
#include "tests/cudart/machine.h"
#endif

namespace sweep::test {
namespace {

#if defined(SWEEP_CUDA_ON_HOST)
constexpr bool kStandIn = true;
#else
constexpr bool kStandIn = false;
#endif

constexpr std::string_view kLibrary = "cuda-library";

std::string_view wanted_device() {
  const char* value = std::getenv("SWEEP_TEST_DEVICE");
  return value != nullptr ? value : kStandIn ? "cuda" : "cpu";
}

class NeedsTheDevice : public testing::Environment {
 public:
  void SetUp() override {
    if (wanted_device() == kLibrary) ::setenv("SWEEP_CUDA_KERNELS", "library", 1);
    const auto reason = unavailable_reason(device());
    if (!reason) return;
    // GoogleTest counts tests that an environment skips as passed; CTest looks for these words.
    std::cout << "[  SKIPPED ] all tests\n";
    GTEST_SKIP() << "no test can run on " << device().name() << ": " << *reason;
  }
#if defined(SWEEP_CUDA_ON_HOST)
  // Such as that something is loaded or allocated while a device exchanges.
  void TearDown() override {
    EXPECT_TRUE(cuda::cudart::mistakes().empty()) << cuda::cudart::mistakes().front();
  }
#endif
};

const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new NeedsTheDevice);

}  // namespace

Device device() {
  const std::string_view wanted = wanted_device();
  return parse_device(wanted == kLibrary ? "cuda" : wanted);
}

bool device_is_stand_in() { return kStandIn; }

}  // namespace sweep::test
