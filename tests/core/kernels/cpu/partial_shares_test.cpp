#include "core/kernels/cpu/partial_shares.h"

#include "tests/support/test.h"

namespace sweep::cpu::partial_shares_test {

TEST(PartialShares, AreConsecutiveAndNearlyEqual) {
  for (std::size_t partials = 1; partials <= 64; ++partials) {
    for (std::size_t turns = 1; turns <= 9; ++turns) {
      for (std::size_t devices = 1; devices <= 9; ++devices) {
        const PartialShares shares(partials, turns, devices);
        SCOPED_TRACE(std::to_string(partials) + " in " + std::to_string(turns) + " turns on " +
                     std::to_string(devices));
        ASSERT_EQ(shares.partials(), partials);
        ASSERT_EQ(shares.turns(), std::min(turns, partials));
        std::size_t next = 0;
        for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
          const IndexRange all = shares.of(turn);
          ASSERT_GE(all.size(), partials / turns);
          ASSERT_LE(all.size(), (partials + shares.turns() - 1) / shares.turns());
          for (std::size_t device = 0; device < devices; ++device) {
            const IndexRange range = shares.of(turn, device);
            ASSERT_EQ(range.begin, next);
            ASSERT_LE(range.size(), (all.size() + devices - 1) / devices);
            next = range.end;
          }
          ASSERT_EQ(next, all.end);
        }
        ASSERT_EQ(next, partials);
      }
    }
  }
}

TEST(PartialShares, CutFewSubtrees) {
  const auto ends = [](std::size_t partials, std::size_t devices) {
    const PartialShares shares(partials, 1, devices);
    std::vector<std::size_t> all;
    for (std::size_t device = 0; device < devices; ++device) all.push_back(shares.of(0, device).end);
    return all;
  };
  using Ends = std::vector<std::size_t>;
  EXPECT_EQ(ends(7, 2), (Ends{4, 7}));
  EXPECT_EQ(ends(64, 4), (Ends{16, 32, 48, 64}));
  EXPECT_EQ(ends(7, 3), (Ends{2, 4, 7}));
  EXPECT_EQ(ends(2, 4), (Ends{1, 2, 2, 2}));
}

TEST(PartialShares, AreTheSameWhenAssignedAgain) {
  PartialShares shares(64, 3, 2);
  shares.assign(5, 3, 2);
  shares.assign(64, 3, 2);
  const PartialShares fresh(64, 3, 2);
  for (std::size_t turn = 0; turn < 3; ++turn) EXPECT_EQ(shares.of(turn, 1).begin, fresh.of(turn, 1).begin);
}

}  // namespace sweep::cpu::partial_shares_test
