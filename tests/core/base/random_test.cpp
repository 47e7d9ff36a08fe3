#include "core/base/random.h"

#include "tests/support/test.h"

namespace sweep::random_test {

using Four = std::array<std::uint32_t, 4>;

// Known answers that the authors of Philox publish with Random123 (tests/kat_vectors, "philox4x32 10").
TEST(Philox, GivesItsAuthorsKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, SeedsUsesAndStreamsDrawDifferentValues) {
  const auto first = [](std::uint64_t seed, RandomUse use, std::uint32_t stream, std::uint32_t substream) {
    return RandomStream(seed, use, stream, substream).next_u32();
  };
  const std::uint32_t base = first(1, RandomUse::kShuffle, 0, 0);
  EXPECT_EQ(base, first(1, RandomUse::kShuffle, 0, 0));
  EXPECT_NE(base, first(2, RandomUse::kShuffle, 0, 0));
  EXPECT_NE(base, first(1ull << 32 | 1, RandomUse::kShuffle, 0, 0));
  EXPECT_NE(base, first(1, RandomUse::kInitialisation, 0, 0));
  EXPECT_NE(base, first(1, RandomUse::kShuffle, 1, 0));
  EXPECT_NE(base, first(1, RandomUse::kShuffle, 0, 1));
}

TEST(RandomStream, ValuesBelowABoundAreUniform) {
  RandomStream random(7, RandomUse::kShuffle);
  constexpr int kBound = 6, kDraws = 60000;
  std::vector<int> counts(kBound);
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(kBound));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_squared, 20.5);  // 99.9th percentile with 5 degrees of freedom
}

TEST(RandomStream, UniformFloatsStayInTheirIntervalAndFillIt) {
  RandomStream random(7, RandomUse::kInitialisation);
  double sum = 0, square = 0;
  for (int i = 0; i < 100000; ++i) {
    const float x = random.uniform(-0.5f, 0.5f);
    ASSERT_GE(x, -0.5f);
    ASSERT_LT(x, 0.5f);
    sum += x;
    square += x * x;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.003);
  EXPECT_NEAR(square / 100000, 1.0 / 12, 0.001);
}

}  // namespace sweep::random_test
