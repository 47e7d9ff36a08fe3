#include "core/parallel/communicator.h"

#include "tests/support/test.h"

namespace sweep::deadline_test {

using namespace std::chrono_literals;

TEST(Deadline, EndsWhenItsTimeIsOver) {
  const Deadline::Clock::time_point start{};
  Deadline deadline(3, start);
  EXPECT_FALSE(deadline.is_over(start + 1s));
  EXPECT_FALSE(deadline.is_over(start + 2s));
  EXPECT_FALSE(deadline.is_over(start + 2900ms));
  EXPECT_TRUE(deadline.is_over(start + 3s));
}

TEST(Deadline, CountsASecondOfTheTimeInWhichTheProcessDidNotRun) {
  const Deadline::Clock::time_point start{};
  Deadline deadline(3, start);
  EXPECT_FALSE(deadline.is_over(start + 1h));
  EXPECT_FALSE(deadline.is_over(start + 2h));
  EXPECT_TRUE(deadline.is_over(start + 3h));
}

}  // namespace sweep::deadline_test
