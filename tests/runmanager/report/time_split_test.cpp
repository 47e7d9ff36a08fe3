#include "runmanager/report/answer_tables.h"

#include "tests/runmanager/answers/made_runs.h"
#include "tests/support/test.h"

namespace sweep::time_split_test {

SourceRun timed(double run_seconds) {
  SourceRun run = testing::made_run({{"lr", run_seconds}}, "cpu", 2, {1.0, 0.5});
  for (EpochRecord& epoch : run.record.epochs) epoch.set("data_wait_seconds", 0.5);
  run.record.run_seconds = run_seconds;
  run.record.setup_seconds = 1;
  run.record.logging_seconds = 0.25;
  return run;
}

TEST(TimeSplit, AddsUpToTheWholeRun) {
  const auto split = time_split(timed(8).record);
  ASSERT_TRUE(split);
  EXPECT_DOUBLE_EQ(split->setup, 1);
  EXPECT_DOUBLE_EQ(split->data_wait, 1);
  EXPECT_DOUBLE_EQ(split->compute, 3);
  EXPECT_DOUBLE_EQ(split->logging, 0.25);
  EXPECT_DOUBLE_EQ(split->rest, 2.75);
}

TEST(TimeSplit, HasTheTimeThatDevicesWaitedForEachOther) {
  SourceRun run = timed(8);
  for (EpochRecord& epoch : run.record.epochs) epoch.set("communication_seconds", 0.75);
  const auto split = time_split(run.record);
  ASSERT_TRUE(split);
  EXPECT_DOUBLE_EQ(split->communication, 1.5);
  EXPECT_DOUBLE_EQ(split->compute, 1.5);
  std::size_t left_out = 0;
  const ChartTable table = times_table(report_data_of({run, timed(6)}), left_out);
  ASSERT_EQ(table.rows.size(), 12u);
  EXPECT_EQ(table.rows[2][3], "waiting for other devices");
}

TEST(TimeSplit, IsNotOfARunThatHasNotEnded) {
  SourceRun run = timed(8);
  run.record.run_seconds.reset();
  EXPECT_FALSE(time_split(run.record));
}

TEST(TimesTable, HasTheLongestRunsIfThereAreMany) {
  std::size_t left_out = 0;
  const ChartTable table = times_table(report_data_of({timed(6), timed(8), timed(7)}), left_out, 2);
  EXPECT_EQ(left_out, 1u);
  ASSERT_EQ(table.rows.size(), 10u);
  EXPECT_EQ(table.rows[0][0], 1);
  EXPECT_EQ(table.rows[5][0], 2);
}

}  // namespace sweep::time_split_test
