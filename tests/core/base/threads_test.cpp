#include "core/base/threads.h"

#include <sstream>

#include "tests/support/test.h"

namespace sweep::threads_test {

TEST(CoresOfQuota, AreWholeOnesAndNoneWithoutALimit) {
  const auto cores = [](const std::string& cpu_max) {
    std::istringstream in(cpu_max);
    return cores_of_quota(in);
  };
  EXPECT_EQ(cores("150000 100000\n"), 2);
  EXPECT_EQ(cores("400000 100000\n"), 4);
  EXPECT_EQ(cores("5000 100000\n"), 1);
  for (const char* text : {"max 100000\n", "", "0 100000"}) EXPECT_EQ(cores(text), std::nullopt) << text;
}

TEST(AvailableCores, AreAtLeastOneAndAtMostThoseOfTheMachine) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace sweep::threads_test
