#include "core/base/out_of_memory.h"

#include <csignal>
#include <new>

#include "tests/support/test.h"

namespace sweep::base_out_of_memory_test {

void fail_to_allocate() {
  // More than there is of addresses; volatile, so that the compiler does not see that.
  volatile std::size_t bytes = std::size_t{1} << 62;
  ::operator delete(::operator new(bytes));
}

// Calls `act` while an exception passes.
struct OnUnwinding {
  std::function<void()> act;
  ~OnUnwinding() {
    if (std::uncaught_exceptions() > 0) act();
  }
};

void must_not_throw(const std::function<void()>& body) noexcept { body(); }

TEST(OutOfMemoryDeathTest, EndsWithTheCodeAndMessageWhereNothingMayBeThrown) {
  const auto run_out = [] {
    exit_when_out_of_memory("the last words\n", 42);
    must_not_throw([] { throw std::bad_alloc(); });
  };
  EXPECT_EXIT(run_out(), ::testing::ExitedWithCode(42), "^the last words\n$");
}

TEST(OutOfMemoryDeathTest, EndsSoWhenTheExceptionCannotBeSeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program at such an allocation itself";
#endif
  const auto run_out = [] {
    exit_when_out_of_memory("the last words\n", 42);
    try {
      const OnUnwinding terminates{[] { std::terminate(); }};
      fail_to_allocate();
    } catch (const std::bad_alloc&) {
    }
  };
  EXPECT_EXIT(run_out(), ::testing::ExitedWithCode(42), "^the last words\n$");
}

TEST(OutOfMemoryDeathTest, EndsSoWhereAFailedAllocationIsNotSurvived) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program at such an allocation itself";
#endif
  for (const int signal : {SIGSEGV, SIGABRT}) {
    const auto raise = [signal] {
      signal == SIGABRT ? std::abort() : static_cast<void>(std::raise(signal));
      std::raise(signal);  // as the instruction that is tried again
    };
    const auto crash = [raise](bool out_of_memory) {
      exit_when_out_of_memory("the last words\n", 42);
      try {
        if (out_of_memory) {
          const OnUnwinding crashes_at_once{raise};
          fail_to_allocate();
        }
      } catch (const std::bad_alloc&) {
      }
      raise();
    };
    const auto crash_later = [raise] {
      exit_when_out_of_memory("the last words\n", 42);
      try {
        fail_to_allocate();
      } catch (const std::bad_alloc&) {
      }
      raise();
    };
    EXPECT_EXIT(crash_later(), ::testing::KilledBySignal(signal), "");
    EXPECT_EXIT(crash(true), ::testing::ExitedWithCode(42),
                signal == SIGABRT ? "^crashed \\(SIGABRT\\) after .* failed:\nthe last words\n$"
                                  : "^crashed \\(SIGSEGV\\) after .* failed:\nthe last words\n$");
    EXPECT_EXIT(crash(false), ::testing::KilledBySignal(signal), "");
  }
}

TEST(OutOfMemoryDeathTest, LeavesOtherEndsAsTheyWere) {
  const auto fail = [] {
    exit_when_out_of_memory("the last words\n", 42);
    must_not_throw([] { throw std::runtime_error("something else"); });
  };
  EXPECT_EXIT(fail(), ::testing::KilledBySignal(SIGABRT), "something else");
}

}  // namespace sweep::base_out_of_memory_test
