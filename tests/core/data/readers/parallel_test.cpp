// One loop on many threads.
#include "core/data/readers/image_folder/decode_images.h"

#include "tests/support/test.h"

namespace sweep::readers_parallel_test {

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const unsigned threads : {0u, 1u, 7u}) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_for(calls.size(), threads, [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelFor, DoesNothingForNoCalls) {
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsWhatACallThrows) {
  std::atomic<std::size_t> calls = 0;
  const auto work = [&](std::size_t i) {
    ++calls;
    if (i == 10) throw std::runtime_error("ten");
  };
  EXPECT_THROW(parallel_for(1'000'000, 2, work), std::runtime_error);
  EXPECT_LT(calls, 1'000'000u);
}

}  // namespace sweep::readers_parallel_test
