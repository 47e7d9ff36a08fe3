// The order in which tasks of stages are put on streams.
#include "core/kernels/cuda/stage_schedule.h"

#include "core/kernels/cuda/stage_round.h"
#include "tests/support/test.h"

namespace sweep::cuda::stage_schedule_test {

using enum PipelineSchedule;

TEST(StageSchedule, RunsOpsOfAStageTogether) {
  const std::vector<std::vector<bool>> ops = {{false, false, false}, {false, false}};
  const StageSchedule schedule(ops, {0, 1});
  EXPECT_EQ(schedule.segments(), (std::vector<Segment>{{0, 0, 3, false}, {1, 0, 2, false}}));
  EXPECT_EQ(schedule.segment_of(0, 2), 0u);
  EXPECT_EQ(schedule.segment_of(1, 1), 1u);
}

TEST(StageSchedule, CutsStagesAtOpsThatNeedTheWholeBatch) {
  const std::vector<std::vector<bool>> ops = {{false, true, false}, {true, true, false}};
  const StageSchedule schedule(ops, {0, 1});
  EXPECT_EQ(schedule.segments(), (std::vector<Segment>{{0, 0, 1, false},
                                                       {0, 1, 2, true},
                                                       {0, 2, 3, false},
                                                       {1, 0, 1, true},
                                                       {1, 1, 2, true},
                                                       {1, 2, 3, false}}));
}

void expect_every_task_once(const StageSchedule& schedule, std::size_t micro_batches, PipelineSchedule order,
                            bool training) {
  std::set<std::tuple<std::size_t, std::size_t, bool>> done;
  const auto all_done = [&](std::size_t segment, std::size_t micro_batch, bool whole, bool backward) {
    const bool is_whole = schedule.segments()[segment].whole_batch;
    if (is_whole) return done.contains({segment, 0, backward});
    if (!whole) return done.contains({segment, micro_batch, backward});
    return done.contains({segment, micro_batches - 1, backward}) && done.contains({segment, 0, backward});
  };
  for (const auto& [segment, micro_batch, backward] : schedule.tasks(micro_batches, order, training)) {
    const bool whole = schedule.segments()[segment].whole_batch;
    EXPECT_TRUE(backward || segment == 0 || all_done(segment - 1, micro_batch, whole, false));
    EXPECT_TRUE(!backward || all_done(segment, micro_batch, whole, false));
    EXPECT_TRUE(!backward || segment + 1 == schedule.segments().size() ||
                all_done(segment + 1, micro_batch, whole, true));
    EXPECT_TRUE(training || !backward);
    EXPECT_TRUE(done.insert({segment, micro_batch, backward}).second);
  }
  std::size_t wanted = 0;
  for (const Segment& segment : schedule.segments())
    wanted += (training ? 2 : 1) * (segment.whole_batch ? 1 : micro_batches);
  EXPECT_EQ(done.size(), wanted) << "devices do not wait for ever";
}

// Whatever the stages, devices and micro-batches: each task comes once, after what it needs.
TEST(StageSchedule, HasEveryTaskOnceAndAfterThoseItNeeds) {
  const std::vector<std::vector<std::vector<bool>>> networks = {
      {{false}},
      {{false, false}, {false}, {false}, {false}, {false}},
      {{true, false}, {false, true, false}, {true, true}, {false, false}},
      {{false, true}, {true, false}, {false}}};
  const std::vector<std::vector<std::size_t>> layouts = {{0}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2, 1, 0}};
  for (const auto& ops : networks) {
    for (const auto& layout : layouts) {
      std::vector<std::size_t> of_stage;
      for (std::size_t stage = 0; stage < ops.size(); ++stage)
        of_stage.push_back(layout[stage % layout.size()]);
      const StageSchedule schedule(ops, of_stage);
      for (const std::size_t micro_batches : {1, 2, 3, 4, 7, 16}) {
        for (const auto order : {kGpipe, kOneForwardOneBackward}) {
          for (const bool training : {false, true}) {
            SCOPED_TRACE(testing::Message()
                         << testing::PrintToString(of_stage) << ", " << micro_batches << " micro-batches");
            expect_every_task_once(schedule, micro_batches, order, training);
          }
        }
      }
    }
  }
}

// How a batch is cut into what goes through stages together.

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

}  // namespace sweep::cuda::stage_schedule_test
