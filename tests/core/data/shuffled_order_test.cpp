// The order of a shuffled epoch: its definition, and that it is as random as it should be.
#include "core/data/shuffled_order.h"

#include <time.h>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/epoch_orders.h"
#include "core/data/readers/sha256.h"
#include "tests/support/test.h"

namespace sweep::shuffled_order_test {

TEST(ShuffledOrder, IsWhatAnIndependentImplementationComputes) {
  // tests/data/make_shuffled_orders.py says how it was made, and checks its generator with Random123's known
  // answers.
  const auto cases = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/shuffled_orders.json"));
  ASSERT_EQ(cases.size(), 10u);
  for (const auto& item : cases) {
    SCOPED_TRACE(item.dump());
    const auto order = shuffled_order(item["count"], item["seed"], item["repeat"], item["epoch"]);
    const std::vector<std::uint32_t> first(order.begin(),
                                           order.begin() + std::min<std::ptrdiff_t>(20, std::ssize(order)));
    EXPECT_EQ(first, item["first"].get<std::vector<std::uint32_t>>());
    Sha256 sha;
    sha.update({reinterpret_cast<const std::uint8_t*>(order.data()), order.size() * 4});
    EXPECT_EQ(sha.finish(), item["sha256"].get<std::string>());
  }
}

// Pearson's statistic for equally likely cells. With k cells it has mean k - 1 and variance 2(k - 1).
double deviations_from_uniform(const std::vector<double>& counts) {
  const double expected =
      std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double chi2 = 0;
  for (const double count : counts) chi2 += (count - expected) * (count - expected) / expected;
  const double degrees = static_cast<double>(counts.size() - 1);
  return (chi2 - degrees) / std::sqrt(2 * degrees);
}

TEST(ShuffledOrder, DrawsEveryPermutationOfFourEquallyOften) {
  std::map<std::vector<std::uint32_t>, double> seen;
  for (std::uint32_t epoch = 0; epoch < 48'000; ++epoch) ++seen[shuffled_order(4, 99, 0, epoch)];
  ASSERT_EQ(seen.size(), 24u);
  std::vector<double> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_LT(std::abs(deviations_from_uniform(counts)), 5);
}

TEST(ShuffledOrder, LeavesNoPatternInALargeOne) {
  // Neighbours: the differences of consecutive samples; their ranks should not be correlated. The correlation
  // of n independent pairs has a standard deviation of 1/sqrt(n).
  constexpr std::size_t kCount = 60'000;
  const auto order = shuffled_order(kCount, 1, 0, 0);
  const double mean = (kCount - 1) / 2.0, variance = (static_cast<double>(kCount) * kCount - 1) / 12.0;
  for (const std::size_t lag : {1, 2, 3, 4, 16, 100}) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < kCount; ++i) sum += (order[i] - mean) * (order[i + lag] - mean);
    EXPECT_LT(std::abs(sum / kCount / variance), 5 / std::sqrt(kCount)) << lag;
  }
  double with_place = 0;
  for (std::size_t i = 0; i < kCount; ++i) with_place += (order[i] - mean) * (static_cast<double>(i) - mean);
  EXPECT_LT(std::abs(with_place / kCount / variance), 5 / std::sqrt(kCount));
}

// Orders that are drawn in advance: the same as ever, and beside whatever the calling thread does.

// Seconds that the calling thread, or all of them, have computed, not those that they have waited.
double computed_seconds(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
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
  const auto seconds_of = [](const auto& work) {
    const double begin = computed_seconds();
    work();
    return computed_seconds() - begin;
  };
  const double drawing = seconds_of([] { shuffled_order(kCount, 3, 1, 0); });
  EpochOrders orders(0, kCount, 3, 1);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_LT(seconds_of([&] { orders.of_epoch(epoch); }), drawing / 10) << "epoch " << epoch;
}

TEST(EpochOrders, AreAbandonedAtOnce) {
  // Seconds to draw; destroyed while the second order is drawn.
  constexpr std::size_t kCount = 20'000'000;
  const auto now = [] { return computed_seconds(CLOCK_PROCESS_CPUTIME_ID); };
  const double begin = now();
  double drawn = 0;
  {
    EpochOrders orders(0, kCount, 3, 1);
    orders.of_epoch(0);
    drawn = now();
  }
  EXPECT_LT(now() - drawn, (drawn - begin) / 2);
}

}  // namespace sweep::shuffled_order_test
