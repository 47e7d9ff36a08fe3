// Batches: order, the short last one, and that workers change nothing but time.
#include "core/data/data_loader.h"

#include "core/data/prefetcher.h"
#include "core/data/shuffled_order.h"
#include "tests/support/resource_limit.h"

namespace sweep::data_loader_test {

// `count` samples of 2x3 pixels, all different, with labels that tell them apart.
std::shared_ptr<const TensorDataset> make_set(std::size_t count) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t p = 0; p < 6; ++p) pixels.push_back(static_cast<std::uint8_t>(i * 7 + i / 256 + p));
    labels.push_back(static_cast<std::int32_t>(i));
  }
  return std::make_shared<TensorDataset>(TensorDataset{{1, 2, 3}, std::move(pixels), std::move(labels)});
}

// What a loader hands out in one epoch: each batch as the labels and pixels of its samples.
using Content = std::vector<std::vector<std::pair<std::int32_t, std::vector<std::uint8_t>>>>;

Content read_epoch(DataLoader& loader, std::uint32_t epoch, std::size_t most = SIZE_MAX) {
  Content content;
  const std::size_t bytes = loader.samples().set->sample_values();
  loader.begin_epoch(epoch);
  while (content.size() < most) {
    const Batch* batch = loader.next();
    if (batch == nullptr) break;
    content.emplace_back();
    for (const std::uint32_t row : batch->indices) {
      const auto pixels = batch->pixels().subspan(row * bytes, bytes);
      content.back().emplace_back(batch->labels()[row],
                                  std::vector<std::uint8_t>(pixels.begin(), pixels.end()));
    }
  }
  return content;
}

std::vector<std::int32_t> labels_of(const Content& content) {
  std::vector<std::int32_t> labels;
  for (const auto& batch : content) {
    for (const auto& sample : batch) labels.push_back(sample.first);
  }
  return labels;
}

class LoaderOfWorkers : public testing::TestWithParam<int> {
 protected:
  LoaderOptions options(std::size_t batch_size, bool shuffle = false) const {
    return {.batch_size = batch_size, .shuffle = shuffle, .num_workers = GetParam(), .seed = 3, .repeat = 1};
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, LoaderOfWorkers, testing::Values(0, 1, 2, 7));

TEST_P(LoaderOfWorkers, KeepsFileOrderAndEndsWithAShortBatch) {
  const auto set = make_set(1050);
  DataLoader loader({set, 0, 1050}, options(100));
  ASSERT_EQ(loader.batch_count(), 11u);
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const Content content = read_epoch(loader, epoch);
    ASSERT_EQ(content.size(), 11u);
    for (std::size_t b = 0; b < 11; ++b) {
      ASSERT_EQ(content[b].size(), b < 10 ? 100u : 50u);
      for (std::size_t i = 0; i < content[b].size(); ++i) {
        EXPECT_EQ(content[b][i].first, static_cast<std::int32_t>(b * 100 + i));
        const auto expected = set->pixels().subspan((b * 100 + i) * 6, 6);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), content[b][i].second.begin()));
      }
    }
  }
  EXPECT_EQ(loader.next(), nullptr);
}

TEST_P(LoaderOfWorkers, ShufflesAsShuffledOrderSays) {
  DataLoader loader({make_set(100), 10, 90}, options(32, /*shuffle=*/true));
  for (const std::uint32_t epoch : {0, 1, 0, 5}) {  // also going back, as a resumed run does
    std::vector<std::int32_t> expected;
    for (const std::uint32_t row : shuffled_order(90, 3, 1, epoch))
      expected.push_back(static_cast<std::int32_t>(row + 10));
    EXPECT_EQ(labels_of(read_epoch(loader, epoch)), expected);
  }
}

TEST_P(LoaderOfWorkers, TakesABatchLargerThanTheSetAndNoSamples) {
  DataLoader loader({make_set(5), 0, 5}, options(1'000'000'000'000));
  EXPECT_EQ(loader.batch_count(), 1u);
  EXPECT_EQ(loader.next(), nullptr) << "before the first epoch";
  EXPECT_EQ(read_epoch(loader, 0).at(0).size(), 5u);
  DataLoader empty({nullptr, 0, 0}, options(4, /*shuffle=*/true));
  EXPECT_EQ(empty.batch_count(), 0u);
  empty.begin_epoch(0);
  EXPECT_EQ(empty.next(), nullptr);
}

TEST_P(LoaderOfWorkers, StartsAnEpochAnewFromAnyPoint) {
  DataLoader loader({make_set(97), 0, 97}, options(4, /*shuffle=*/true));
  DataLoader reference({make_set(97), 0, 97}, {.batch_size = 4, .shuffle = true, .seed = 3, .repeat = 1});
  for (std::uint32_t epoch = 0; epoch < 30; ++epoch) {
    read_epoch(loader, epoch, epoch % 26);  // leaves it unfinished
    EXPECT_EQ(read_epoch(loader, epoch), read_epoch(reference, epoch));
  }
}

TEST_P(LoaderOfWorkers, CanBeDestroyedInMidEpoch) {
  const auto set = make_set(50);
  for (std::size_t batches = 0; batches < 30; ++batches) {
    {
      DataLoader loader({set, 0, 50}, options(2, /*shuffle=*/true));
      EXPECT_EQ(read_epoch(loader, 0, batches).size(), std::min<std::size_t>(batches, 25));
    }
    EXPECT_EQ(set.use_count(), 1) << "no worker has the set any more";
  }
}

TEST_P(LoaderOfWorkers, ReusesItsBuffers) {
  if (GetParam() == 0) {
    // Without workers there is nothing to copy: a batch shows rows of the set itself.
    const auto set = make_set(50);
    DataLoader loader({set, 0, 50}, options(4, /*shuffle=*/true));
    loader.begin_epoch(0);
    while (const Batch* batch = loader.next()) EXPECT_EQ(batch->pixels().data(), set->pixels().data());
    return;
  }
  DataLoader loader({make_set(400), 0, 400}, options(4));
  std::vector<const std::uint8_t*> buffers;
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    loader.begin_epoch(epoch);
    while (const Batch* batch = loader.next()) buffers.push_back(batch->pixels().data());
  }
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  EXPECT_EQ(buffers.size(), 2u * GetParam() + 1) << "two batches ahead for each worker, and the one in use";
}

TEST_P(LoaderOfWorkers, CountsTheTimeInsideNextOnly) {
  DataLoader loader({make_set(20), 0, 20}, options(10));
  loader.begin_epoch(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto start = std::chrono::steady_clock::now();
  loader.next();
  const double inside = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_GT(loader.wait_seconds(), 0);
  EXPECT_LE(loader.wait_seconds(), inside);
  loader.begin_epoch(1);
  EXPECT_EQ(loader.wait_seconds(), 0);
}

TEST(DataLoader, RefusesOptionsThatMakeNoSense) {
  const auto make = [](Subset samples, LoaderOptions options) {
    return test::message_of<ConfigError>([&] { DataLoader(std::move(samples), options); });
  };
  const auto set = make_set(3);
  EXPECT_EQ(make({set, 0, 3}, {.batch_size = 0}), "batch_size must be at least 1, found 0");
  EXPECT_EQ(make({set, 0, 3}, {.batch_size = 1, .num_workers = -1}),
            "num_workers must be at least 0, found -1");
  EXPECT_THAT(make({set, 1, 3}, {}), HasSubstr("samples 1 to 4 were asked of a data set of 3"));
  EXPECT_THAT(make({set, SIZE_MAX, 2}, {}), HasSubstr("of a data set of 3"));
  EXPECT_THAT(make({nullptr, 0, 1}, {}), HasSubstr("of a data set of 0"));
  const auto order = std::make_shared<const std::vector<std::uint32_t>>(std::vector<std::uint32_t>{0, 3});
  EXPECT_EQ(make({set, 0, 1, order}, {}), "the order of the samples has a row beyond the data set's 3");
}

TEST(DataLoader, SaysWhatToDoWhereThereAreNoThreadsForItsWorkers) {
  const auto set = make_set(200);
  const std::string message = test::message_of<ConfigError>([&] {
    const test::AddressSpaceLimit no_more_stacks(1 << 20);
    DataLoader({set, 0, 200}, {.batch_size = 1, .num_workers = 64}).begin_epoch(0);
  });
  EXPECT_THAT(message, StartsWith("num_workers = 64: cannot start a thread that prepares batches: "));
  EXPECT_THAT(message, HasSubstr("ulimit -u"));
}

TEST(DataLoader, TakesMoreWorkersThanThereAreBatches) {
  DataLoader loader({make_set(10), 0, 10}, {.batch_size = 4, .num_workers = 100'000});
  EXPECT_EQ(read_epoch(loader, 0).size(), 3u);
}

// Background workers: order, bounds, errors, and ending at any time.

using std::chrono::milliseconds;

class PrefetcherOfThreads : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, PrefetcherOfThreads, testing::Values(1, 2, 7));

TEST_P(PrefetcherOfThreads, HandsOutEveryItemInOrder) {
  for (const std::size_t count : {20, 1, 0, 33}) {
    std::vector<std::size_t> slots(2 * GetParam() + 1);
    Prefetcher prefetcher(GetParam(), slots.size(), count, [&](std::size_t item, std::size_t slot) {
      if (item % 5 == 0) std::this_thread::sleep_for(milliseconds(1));  // so that later items are ready first
      slots[slot] = 1000 + item;
    });
    for (std::size_t item = 0; item < count; ++item) {
      const auto slot = prefetcher.next();
      ASSERT_TRUE(slot.has_value());
      EXPECT_EQ(slots[*slot], 1000 + item);
    }
    EXPECT_FALSE(prefetcher.next().has_value());
    EXPECT_FALSE(prefetcher.next().has_value());
  }
}

TEST_P(PrefetcherOfThreads, CanBeDestroyedAtAnyTime) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> begun{0}, ended{0};
    {
      Prefetcher prefetcher(GetParam(), 3, 50, [&](std::size_t, std::size_t) {
        ++begun;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        ++ended;
      });
      for (int i = 0; i < round % 7; ++i) EXPECT_TRUE(prefetcher.next().has_value());
    }
    EXPECT_EQ(begun, ended) << "the destructor waits for items in work";
    EXPECT_GE(ended, round % 7);
  }
}

TEST_P(PrefetcherOfThreads, MakesAllItemsItMayAndNoMore) {
  const std::size_t slots = 2 * GetParam() + 1;
  std::atomic<std::size_t> made{0};
  Prefetcher prefetcher(GetParam(), slots, 100, [&](std::size_t, std::size_t) { ++made; });
  const auto settles_at = [&](std::size_t expected) {
    for (int i = 0; i < 2000 && made < expected; ++i) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(5));  // time to make one too many
    return made == expected;
  };
  EXPECT_TRUE(settles_at(slots)) << made;
  prefetcher.next();
  EXPECT_TRUE(settles_at(slots)) << "the item handed out is still in use; made " << made;
  prefetcher.next();
  EXPECT_TRUE(settles_at(slots + 1)) << made;
}

TEST_P(PrefetcherOfThreads, NeverOverwritesTheItemInUse) {
  std::vector<std::atomic<std::size_t>> slots(GetParam() + 1);
  Prefetcher prefetcher(GetParam(), slots.size(), 2000,
                        [&](std::size_t item, std::size_t slot) { slots[slot] = item; });
  for (std::size_t item = 0; item < 2000; ++item) {
    const auto slot = prefetcher.next();
    for (int look = 0; look < 20; ++look) ASSERT_EQ(slots[*slot], item);
  }
}

TEST_P(PrefetcherOfThreads, GivesTheErrorOfAnItemInItsTurn) {
  Prefetcher prefetcher(GetParam(), 3, 9, [](std::size_t item, std::size_t) {
    if (item >= 4) throw std::runtime_error("item " + std::to_string(item));
  });
  for (int item = 0; item < 4; ++item) EXPECT_TRUE(prefetcher.next().has_value());
  for (int call = 0; call < 3; ++call)  // never the end of a round that is not complete
    EXPECT_THAT([&] { prefetcher.next(); }, ThrowsMessage<std::runtime_error>("item 4"));
}

}  // namespace sweep::data_loader_test
