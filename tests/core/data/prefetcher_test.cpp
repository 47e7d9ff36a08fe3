// Background workers: order, bounds, errors, and ending at any time.
#include "core/data/prefetcher.h"

#include "tests/support/test.h"

namespace sweep::prefetcher_test {

using std::chrono::milliseconds;

class PrefetcherOfThreads : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, PrefetcherOfThreads, testing::Values(1, 2, 7));

TEST_P(PrefetcherOfThreads, HandsOutEveryItemInOrderRoundAfterRound) {
  std::vector<std::size_t> slots(2 * GetParam() + 1);
  Prefetcher prefetcher(GetParam(), slots.size(), [&](std::size_t item, std::size_t slot) {
    if (item % 5 == 0) std::this_thread::sleep_for(milliseconds(1));  // so that later items are ready first
    slots[slot] = 1000 + item;
  });
  for (const std::size_t count : {20, 1, 0, 33}) {
    prefetcher.start(count);
    for (std::size_t item = 0; item < count; ++item) {
      const auto slot = prefetcher.next();
      ASSERT_TRUE(slot.has_value());
      EXPECT_EQ(slots[*slot], 1000 + item);
    }
    EXPECT_FALSE(prefetcher.next().has_value());
    EXPECT_FALSE(prefetcher.next().has_value());
  }
}

TEST_P(PrefetcherOfThreads, MakesAllItemsItMayAndNoMore) {
  const std::size_t slots = 2 * GetParam() + 1;
  std::atomic<std::size_t> made{0};
  Prefetcher prefetcher(GetParam(), slots, [&](std::size_t, std::size_t) { ++made; });
  const auto settles_at = [&](std::size_t expected) {
    for (int i = 0; i < 2000 && made < expected; ++i) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(5));  // time to make one too many
    return made == expected;
  };
  prefetcher.start(100);
  EXPECT_TRUE(settles_at(slots)) << made;
  prefetcher.next();
  EXPECT_TRUE(settles_at(slots)) << "the item handed out is still in use; made " << made;
  prefetcher.next();
  EXPECT_TRUE(settles_at(slots + 1)) << made;
}

TEST_P(PrefetcherOfThreads, NeverOverwritesTheItemInUse) {
  std::vector<std::atomic<std::size_t>> slots(GetParam() + 1);
  Prefetcher prefetcher(GetParam(), slots.size(),
                        [&](std::size_t item, std::size_t slot) { slots[slot] = item; });
  prefetcher.start(2000);
  for (std::size_t item = 0; item < 2000; ++item) {
    const auto slot = prefetcher.next();
    for (int look = 0; look < 20; ++look) ASSERT_EQ(slots[*slot], item);
  }
}

TEST_P(PrefetcherOfThreads, GivesTheErrorOfAnItemInItsTurn) {
  Prefetcher prefetcher(GetParam(), 3, [](std::size_t item, std::size_t) {
    if (item >= 4) throw std::runtime_error("item " + std::to_string(item));
  });
  prefetcher.start(9);
  for (int item = 0; item < 4; ++item) EXPECT_TRUE(prefetcher.next().has_value());
  try {
    prefetcher.next();
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "item 4");
  }
  EXPECT_FALSE(prefetcher.next().has_value());
  prefetcher.start(3);  // and can be used again
  for (int item = 0; item < 3; ++item) EXPECT_TRUE(prefetcher.next().has_value());
}

TEST_P(PrefetcherOfThreads, CanBeStoppedAndDestroyedAtAnyTime) {
  for (int round = 0; round < 200; ++round) {
    auto data = std::make_unique<int>(1);
    std::atomic<int> begun{0}, ended{0};
    {
      Prefetcher prefetcher(GetParam(), 3, [&](std::size_t, std::size_t) {
        ++begun;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        ended += *data;
      });
      if (round % 4 > 0) {
        prefetcher.start(50);
        for (int i = 0; i < round % 7; ++i) EXPECT_TRUE(prefetcher.next().has_value());
      }
      if (round % 4 > 1) {
        prefetcher.stop();
        EXPECT_EQ(begun, ended) << "stop() waits for items in work";
        data = std::make_unique<int>(1);  // Nobody may be reading it.
      }
      if (round % 4 == 2) prefetcher.start(2);
    }
    EXPECT_EQ(begun, ended) << "so does the destructor";
    EXPECT_GE(ended, round % 4 > 0 ? round % 7 : 0);
  }
}

}  // namespace sweep::prefetcher_test
