#include "core/kernels/cuda/runtime/memory_plan.h"

#include "core/base/random.h"
#include "core/kernels/cuda/runtime/divisor.h"
#include "tests/support/test.h"

namespace sweep::cuda::memory_plan_test {

TEST(MemoryPlan, ArraysThatAreAliveTogetherNeverOverlap) {
  RandomStream random(1, RandomUse::kShuffle);
  for (int round = 0; round < 300; ++round) {
    struct Request {
      std::size_t bytes;
      int first, last;
      Slot slot;
    };
    std::vector<Request> requests(1 + random.below(25));
    MemoryPlan plan;
    for (Request& r : requests) {
      r.bytes = random.below(5000);
      r.first = static_cast<int>(random.below(20));
      r.last = r.first + static_cast<int>(random.below(10));
      r.slot = plan.add(r.bytes, r.first, r.last);
    }
    const std::size_t total = plan.solve();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Request& a = requests[i];
      ASSERT_EQ(plan.offset(a.slot) % 256, 0u);
      ASSERT_LE(plan.offset(a.slot) + a.bytes, total);
      for (std::size_t j = 0; j < i; ++j) {
        const Request& b = requests[j];
        if (a.first > b.last || b.first > a.last) continue;
        ASSERT_TRUE(plan.offset(a.slot) + a.bytes <= plan.offset(b.slot) ||
                    plan.offset(b.slot) + b.bytes <= plan.offset(a.slot));
      }
    }
  }
}

TEST(MemoryPlan, ArraysOfABatchInPartsShareMemoryOnlyIfNoPartLeavesThemToAnother) {
  MemoryPlan plan(true);
  const Slot first = plan.add_rows(4, 100, 0, 1), second = plan.add_rows(4, 100, 2, 3);
  const Slot scratch = plan.add(300, 0, 0), other = plan.add(200, 2, 2);
  EXPECT_EQ(plan.solve(), 3 * 512u);
  EXPECT_NE(plan.offset(first), plan.offset(second));
  EXPECT_EQ(plan.offset(scratch), plan.offset(other));
  EXPECT_EQ(plan.row_bytes(first), 100u);
  EXPECT_EQ(plan.row_bytes(scratch), 0u);
}

TEST(MemoryPlan, ArraysThatFollowEachOtherShareMemory) {
  MemoryPlan plan;
  plan.add(1024, 0, 1);
  plan.add(512, 2, 3);
  plan.add(512, 2, 3);
  plan.add(1024, 4, 4);
  EXPECT_EQ(plan.solve(), 1024u);
}

TEST(Divisor, DividesAsTheProcessorDoes) {
  RandomStream random(2, RandomUse::kShuffle);
  constexpr int kLargest = 0x7FFFFFFF;
  const auto check = [](int n, int d) {
    const Divisor::Result result = Divisor(d).divide(n);
    ASSERT_EQ(result.quotient, n / d) << n << " / " << d;
    ASSERT_EQ(result.remainder, n % d);
  };
  for (int d = 1; d < 2000; ++d) {
    for (const int n :
         {0, 1, d - 1, d, d + 1, kLargest / d * d - 1, kLargest / d * d, kLargest - 1, kLargest})
      check(n, d);
  }
  for (int i = 0; i < 200000; ++i) {
    const auto d = static_cast<int>((1 + random.next_u32() % kLargest) >> random.below(31));
    check(static_cast<int>(random.next_u32() >> 1), d > 0 ? d : 1);
  }
  check(kLargest, kLargest);
  check(kLargest, 1 << 30);
}

}  // namespace sweep::cuda::memory_plan_test
