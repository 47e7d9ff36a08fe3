#include "core/kernels/cpu/adaptive_wait.h"

#include "tests/support/test.h"

namespace sweep::cpu::adaptive_wait_test {

TEST(SpinLimit, IsZeroAfterContentionAndRecoversSlowly) {
  SpinLimit limit;
  EXPECT_EQ(limit.get(), SpinLimit::kMax);
  limit.update(true);
  EXPECT_EQ(limit.get(), SpinLimit::Duration::zero());
  for (int wait = 0; wait < 20; ++wait) limit.update(false);
  EXPECT_GT(limit.get(), SpinLimit::Duration::zero());
  EXPECT_LT(limit.get(), SpinLimit::kMax / 2);
  for (int wait = 0; wait < 200; ++wait) limit.update(false);
  EXPECT_EQ(limit.get(), SpinLimit::kMax);
}

TEST(WaitableCounter, WakesThreadsThatSpinAndThreadsThatSleep) {
  WaitableCounter counter;
  SpinLimit spins, sleeps;
  sleeps.update(true);
  std::thread first([&] { counter.wait_while_equal(0, spins); });
  std::thread second([&] { counter.wait_while_equal(0, sleeps); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(counter.add(3), 3);
  counter.wake_all();
  first.join();
  second.join();
  counter.wait_while_equal(0, spins);  // Returns at once.
  EXPECT_EQ(counter.load(), 3);
}

TEST(WaitableCounter, LosesNoWakeUp) {
  WaitableCounter ping, pong;
  constexpr std::uint32_t kRounds = 2000;
  std::thread other([&] {
    SpinLimit limit;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      limit.update(true);  // Always sleeps.
      ping.wait_while_equal(round, limit);
      pong.add(1);
      pong.wake_all();
    }
  });
  SpinLimit limit;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    limit.update(true);
    ping.add(1);
    ping.wake_all();
    pong.wait_while_equal(round, limit);
  }
  other.join();
  EXPECT_EQ(pong.load(), kRounds);
}

}  // namespace sweep::cpu::adaptive_wait_test
