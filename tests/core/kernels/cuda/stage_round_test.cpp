// How a batch is cut into what goes through stages together.
#include "core/kernels/cuda/stage_round.h"

#include "tests/support/test.h"

namespace sweep::cuda::stage_round_test {

std::vector<int> begins_of_micro_batches(std::size_t samples, std::size_t micro_batches, std::size_t unit) {
  const StageRound round = evaluation_round(samples, {.micro_batches = micro_batches, .unit = unit});
  std::vector<int> begins;
  for (const StageRound::MicroBatch& micro_batch : round.micro_batches) {
    EXPECT_EQ(micro_batch.begin, begins.empty() ? 0 : begins.back());
    if (begins.empty()) begins.push_back(micro_batch.begin);
    begins.push_back(micro_batch.end);
  }
  EXPECT_EQ(round.shares.at(0).micro_batches, round.micro_batches.size());
  return begins;
}

TEST(StageRound, HasMicroBatchesOfEqualSizeExceptForUnits) {
  EXPECT_EQ(begins_of_micro_batches(10, 4, 1), (std::vector<int>{0, 2, 5, 7, 10}));
  EXPECT_EQ(begins_of_micro_batches(3, 4, 1), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(begins_of_micro_batches(100, 3, 16), (std::vector<int>{0, 32, 64, 100}));
  EXPECT_EQ(begins_of_micro_batches(10, 4, 16), (std::vector<int>{0, 10}));
}

TEST(StageRound, OfAWholeBatchIsOne) {
  const std::vector<StageRound> rounds = training_rounds(10, {.micro_batches = 2});
  ASSERT_EQ(rounds.size(), 1U);
  EXPECT_FALSE(rounds[0].adds);
  ASSERT_EQ(rounds[0].micro_batches.size(), 2U);
  EXPECT_FALSE(rounds[0].is_last(rounds[0].micro_batches[0]));
  EXPECT_TRUE(rounds[0].is_last(rounds[0].micro_batches[1]));
  EXPECT_FALSE(rounds[0].is_whole(rounds[0].micro_batches[1]));
}

// Two turns of 8 shares, of which the set computes the third to the fifth.
TEST(StageRound, IsATurnIfItsSharesAreTogetherAndElseAPart) {
  const BatchShares shares{.turns = 2, .count = 8, .first = 2, .end = 5, .most = 3};
  const std::vector<StageRound> together = training_rounds(33, {.shares = shares, .together = true}),
                                apart = training_rounds(33, {.shares = shares});
  ASSERT_EQ(together.size(), 2U);
  ASSERT_EQ(apart.size(), 6U);
  std::size_t fed = 0;
  for (std::size_t turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(together[turn].adds, turn > 0);
    EXPECT_EQ(together[turn].sizes.images, turn == 0 ? 16 : 17);
    ASSERT_EQ(together[turn].shares.size(), 3U);
    for (std::size_t share = 0; share < 3; ++share) {
      const StageRound::Share& one = together[turn].shares[share];
      EXPECT_EQ(one.number, static_cast<int>(share) + 2);
      EXPECT_EQ(one.fed, fed);
      EXPECT_EQ(one.samples.begin, (turn == 0 ? 0U : 16U) + (turn == 0 ? 16U : 17U) * (share + 2) / 8);
      fed += one.samples.size();
      ASSERT_EQ(apart[3 * turn + share].shares.size(), 1U);
      EXPECT_EQ(apart[3 * turn + share].shares[0].fed, one.fed);
      EXPECT_EQ(apart[3 * turn + share].adds, turn > 0);
    }
  }
}

// Turns that are left out are no first turns; shares without samples have a gradient of zeros.
TEST(StageRound, MayHaveNoSamples) {
  const BatchShares shares{.turns = 3, .count = 8, .first = 0, .end = 4, .most = 4};
  const std::vector<StageRound> rounds = training_rounds(1, {.shares = shares, .together = true});
  ASSERT_EQ(rounds.size(), 1U);
  EXPECT_FALSE(rounds[0].adds);
  EXPECT_EQ(rounds[0].shares.size(), 4U);
  EXPECT_TRUE(rounds[0].micro_batches.empty());
}

}  // namespace sweep::cuda::stage_round_test
