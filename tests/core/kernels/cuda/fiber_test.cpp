#include "tests/cudart/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "tests/support/test.h"

namespace sweep::cuda::cudart::fiber_test {

TEST(Fiber, GoesOnBehindItsYield) {
  std::string seen;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    for (char letter = 'a';; ++letter) {
      seen += letter;
      self->yield();
    }
  });
  self = &fiber;
  for (const char* between : {"1", "2", "3"}) {
    fiber.resume();
    seen += between;
  }
  EXPECT_EQ(seen, "a1b2c3");
}

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
