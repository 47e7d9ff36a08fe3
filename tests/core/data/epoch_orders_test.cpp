// Orders that are drawn in advance: the same as ever, and beside whatever the calling thread does.
#include "core/data/epoch_orders.h"

#include <time.h>

#include "core/data/shuffled_order.h"
#include "tests/support/test.h"

namespace sweep::epoch_orders_test {

// Seconds that the calling thread computes, not those that it waits.
double computing_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work();
  return now() - begin;
}

TEST(EpochOrders, AreThoseOfShuffledOrder) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{500},
                                  EpochOrders::kLeastDrawnAhead, 5 * EpochOrders::kLeastDrawnAhead}) {
    SCOPED_TRACE(count);
    EpochOrders orders(7, count, 3, 1);
    // Also from the middle, one again, back, and the last there is.
    for (const std::uint32_t epoch : {4u, 5u, 6u, 6u, 2u, 0u, 1u, 0xFFFFFFFFu, 0u}) {
      std::vector<std::uint32_t> expected = shuffled_order(count, 3, 1, epoch);
      for (std::uint32_t& sample : expected) sample += 7;
      const std::span<const std::uint32_t> order = orders.of_epoch(epoch);
      EXPECT_TRUE(std::ranges::equal(order, expected)) << "epoch " << epoch;
    }
  }
}

TEST(EpochOrders, CostTheCallingThreadNothing) {
  constexpr std::size_t kCount = 1'000'000;
  const double drawing = computing_seconds([] { shuffled_order(kCount, 3, 1, 0); });
  EpochOrders orders(0, kCount, 3, 1);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_LT(computing_seconds([&] { orders.of_epoch(epoch); }), drawing / 10) << "epoch " << epoch;
}

TEST(EpochOrders, AreAbandonedAtOnce) {
  // Seconds to draw; destroyed while the second order is drawn.
  constexpr std::size_t kCount = 20'000'000;
  const auto seconds = [](clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  double begin = seconds(CLOCK_PROCESS_CPUTIME_ID), drawn = 0;
  {
    EpochOrders orders(0, kCount, 3, 1);
    orders.of_epoch(0);
    drawn = seconds(CLOCK_PROCESS_CPUTIME_ID);
  }
  const double abandoned = seconds(CLOCK_PROCESS_CPUTIME_ID);
  EXPECT_LT(abandoned - drawn, (drawn - begin) / 2);
}

}  // namespace sweep::epoch_orders_test
