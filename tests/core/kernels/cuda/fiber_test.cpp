#include "tests/cudart/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "tests/support/test.h"

namespace sweep::cuda::cudart::fiber_test {

#if defined(__SANITIZE_ADDRESS__)
TEST(Fiber, LeavesNoMarksOfAddressSanitizerBehind) {
  char* frame = nullptr;
  {
    Fiber* self = nullptr;
    Fiber fiber([&] {
      char local[100] = "on the fiber's stack";
      frame = local;
      self->yield();
      ADD_FAILURE() << "resumed, with " << local;
    });
    self = &fiber;
    fiber.resume();
    EXPECT_NE(__asan_region_is_poisoned(frame, 200), nullptr) << "expects marks behind a local array";
  }
  EXPECT_EQ(__asan_region_is_poisoned(frame, 200), nullptr);
}
#endif

}  // namespace sweep::cuda::cudart::fiber_test
