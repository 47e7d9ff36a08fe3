// The order in which tasks of stages are put on streams.
#include "core/kernels/cuda/stage_schedule.h"

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

TEST(StageSchedule, OfAnEvaluationOnlyGoesForward) {
  const std::vector<std::vector<bool>> ops = {{false}, {false}};
  for (const SegmentTask& task : StageSchedule(ops, {0, 1}).tasks(5, kOneForwardOneBackward, false))
    EXPECT_FALSE(task.backward);
}

// Whatever the stages, devices and micro-batches: each task comes once, after what it needs.
TEST(StageSchedule, HasEveryTaskOnceAndAfterThoseItNeeds) {
  const std::vector<std::vector<std::vector<bool>>> networks = {
      {{false}},
      {{false, false}, {false}, {false}, {false}},
      {{true, false}, {false, true, false}, {true, true}, {false, false}},
      {{false, true}, {true, false}, {false}}};
  for (const auto& ops : networks) {
    for (const std::size_t devices : {1, 2, 4}) {
      std::vector<std::size_t> of_stage;
      for (std::size_t stage = 0; stage < ops.size(); ++stage) of_stage.push_back(stage % devices);
      const StageSchedule schedule(ops, of_stage);
      for (const std::size_t micro_batches : {1, 2, 5}) {
        for (const auto order : {kGpipe, kOneForwardOneBackward}) {
          std::set<std::tuple<std::size_t, std::size_t, bool>> done;
          const auto all_done = [&](std::size_t segment, std::size_t micro_batch, bool whole, bool backward) {
            const bool is_whole = schedule.segments()[segment].whole_batch;
            if (is_whole) return done.contains({segment, 0, backward});
            if (!whole) return done.contains({segment, micro_batch, backward});
            return done.contains({segment, micro_batches - 1, backward}) &&
                   done.contains({segment, 0, backward});
          };
          std::size_t wanted = 0;
          for (const Segment& segment : schedule.segments())
            wanted += segment.whole_batch ? 2 : 2 * micro_batches;
          for (const auto& [segment, micro_batch, backward] : schedule.tasks(micro_batches, order, true)) {
            const bool whole = schedule.segments()[segment].whole_batch;
            EXPECT_TRUE(backward || segment == 0 || all_done(segment - 1, micro_batch, whole, false));
            EXPECT_TRUE(!backward || all_done(segment, micro_batch, whole, false));
            EXPECT_TRUE(!backward || segment + 1 == schedule.segments().size() ||
                        all_done(segment + 1, micro_batch, whole, true));
            EXPECT_TRUE(done.insert({segment, micro_batch, backward}).second);
          }
          EXPECT_EQ(done.size(), wanted);
        }
      }
    }
  }
}

}  // namespace sweep::cuda::stage_schedule_test
