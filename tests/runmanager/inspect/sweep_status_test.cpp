#include "runmanager/inspect/sweep_status.h"

#include "tests/support/run_world.h"
#include "tests/support/test.h"

namespace sweep::sweep_status_test {

TEST(SweepListing, CountsTheRunsOfEachSweepAndNamesTheBest) {
  World world;
  world.run(small_sweep());
  fs::create_directory(world.options.logdir / "notes");
  const std::vector<SweepStatus> sweeps = list_sweeps(world.options.logdir);
  ASSERT_THAT(sweeps, SizeIs(1));
  EXPECT_EQ(sweeps[0].directory, world.options.logdir / "small");
  EXPECT_EQ(sweeps[0].runs, 2u);
  EXPECT_THAT(sweeps[0].statuses, ElementsAre(Pair(RunStatus::kCompleted, 2u)));
  EXPECT_FALSE(sweeps[0].is_held);
  EXPECT_EQ(sweeps[0].best, "lr=0.5,device=cpu");
  EXPECT_FALSE(sweeps[0].started.empty());
  EXPECT_GE(sweeps[0].ended, sweeps[0].started);
}

TEST(SweepListing, FindsSweepsInFoldersAndFollowsNoLinks) {
  World world;
  world.run(small_sweep());
  const fs::path logdir = world.options.logdir;
  fs::create_directory(logdir / "monday");
  fs::rename(logdir / "small", logdir / "monday/small");
  fs::create_directory_symlink(logdir, logdir / "monday/back");
  const std::vector<SweepStatus> sweeps = list_sweeps(logdir);
  ASSERT_THAT(sweeps, SizeIs(1));
  EXPECT_EQ(sweeps[0].directory, logdir / "monday/small");
}

TEST(SweepListing, ASweepThatCannotBeReadIsListedWithTheReason) {
  World world;
  world.run(small_sweep());
  tbwriter::spill(world.options.logdir / "small/lr=0.5,device=cpu/run.json", "{");
  const std::vector<SweepStatus> sweeps = list_sweeps(world.options.logdir);
  ASSERT_THAT(sweeps, SizeIs(1));
  EXPECT_THAT(sweeps[0].problem, HasSubstr("lr=0.5,device=cpu/run.json"));
  const fs::path record = world.options.logdir / "small/lr=0.5,device=cpu/run.json";
  fs::remove(record);
  fs::create_symlink("run.json", record);  // to itself
  EXPECT_THAT(list_sweeps(world.options.logdir).at(0).problem, HasSubstr(record.string() + ": "));
}

TEST(SweepListing, AnEmptyDirectoryHasNoneAndAMissingOneIsAnError) {
  const TemporaryDirectory directory;
  EXPECT_THAT(list_sweeps(directory.path()), IsEmpty());
  EXPECT_THAT(test::message_of<DataError>([&] { list_sweeps(directory.path() / "runs"); }),
              HasSubstr("is not there; want the directory of a sweep"));
}

}  // namespace sweep::sweep_status_test
