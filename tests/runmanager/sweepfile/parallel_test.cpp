// The keys "parallel" and "accumulate".

#include "runmanager/records/run_identity.h"
#include "tests/support/sweep_folder.h"

#include "tests/support/test.h"

namespace sweep::sweepfile_parallel_test {

using testing::SweepFolder;

ParallelOptions parallel_of(const std::string& keys) {
  const SweepFolder folder;
  return folder.load(SweepFolder::with(keys)).runs.at(0).parallel;
}

TEST(Parallel, IsNoneUnlessGiven) {
  EXPECT_EQ(parallel_of(R"("lr": 0.1)"), ParallelOptions{});
  EXPECT_EQ(parallel_of(R"("parallel": "none")"), ParallelOptions{});
}

TEST(Parallel, HasWhatTheFileSays) {
  const ParallelOptions options = parallel_of(
      R"("parallel": {"data": 2, "model": {"fc*": "cpu:0", "out": "cpu:1"},
          "pipeline": {"micro_batches": 8, "schedule": "1f1b"}})");
  EXPECT_EQ(options.data, 2);
  EXPECT_THAT(options.model, ElementsAre(LayerPlacement{"fc*", "cpu"}, LayerPlacement{"out", "cpu:1"}));
  ASSERT_TRUE(options.pipeline);
  EXPECT_EQ(options.pipeline->micro_batches, 8);
  EXPECT_EQ(options.pipeline->schedule, PipelineSchedule::kOneForwardOneBackward);
}

TEST(Parallel, AsAnAxisIsNamedInShort) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"parallel": ["none", {"data": 2}, {"model": {"out": "cpu:1", "*": "cpu:0"}},
          {"pipeline": {"stages": 2}}, {"pipeline": {"stages": ["out"], "micro_batches": 8}}]})"));
  std::vector<std::string> texts;
  for (const RunConfig& run : sweep.runs) texts.push_back(param_text(run.params.at(0).second));
  EXPECT_THAT(texts, ElementsAre("none", "data-2", "out-cpu.1+*-cpu", "pipeline-2x4", "pipeline-outx8"));
  EXPECT_EQ(sweep.runs.at(0).name, "parallel=none");
  EXPECT_EQ(sweep.runs.at(3).parallel.pipeline->stages, 2);
}

TEST(Parallel, MayHaveAxesOfItsParts) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("parallel": {"pipeline": {"stages": 2}}, "params": {"parallel.pipeline.micro_batches": [1, 5]})"));
  EXPECT_EQ(sweep.runs.at(0).parallel.pipeline->micro_batches, 1);
  EXPECT_EQ(sweep.runs.at(1).parallel.pipeline->micro_batches, 5);
}

TEST(Parallel, LayersThatNameTheirDevicesSayWhereTheRunIs) {
  const SweepFolder folder;
  EXPECT_EQ(folder.load(SweepFolder::with(R"("device": "cpu:1")")).runs.at(0).device, "cpu");
  EXPECT_EQ(folder.load(SweepFolder::with(R"("parallel": {"model": {"out": "cpu:1"}})")).runs.at(0).device,
            "cpu");
}

// A run that four devices began goes on with two.
TEST(Parallel, DoesNotChangeWhatARunIs) {
  const SweepFolder folder;
  const auto identity = [&folder](const std::string& keys) {
    const Sweep sweep = folder.load(SweepFolder::with(keys));
    return identity_of(sweep.runs.at(0).resolved.json(), "cpu", nullptr);
  };
  const RunIdentity plain = identity(R"("lr": 0.1)");
  EXPECT_TRUE(differences(plain, identity(R"("lr": 0.1, "parallel": {"data": 4})")).empty());
  EXPECT_TRUE(differences(plain, identity(R"("lr": 0.1, "parallel": {"pipeline": {"stages": 2}})")).empty());
  EXPECT_FALSE(differences(plain, identity(R"("lr": 0.1, "accumulate": 2)")).empty());
}

// Records of earlier versions have keys that there are no more.
TEST(RunIdentity, IsThatOfEarlierVersionsWhichHadAPrecision) {
  const SweepFolder folder;
  const auto now = folder.load(SweepFolder::with(R"("precision": "fp32")")).runs.at(0).resolved.json();
  EXPECT_FALSE(now.contains("precision"));
  auto before = now;
  before["precision"] = "fp32";
  EXPECT_TRUE(differences(identity_of(before, "cpu", nullptr), identity_of(now, "cpu", nullptr)).empty());
  before["precision"] = "bf16";
  EXPECT_FALSE(differences(identity_of(before, "cpu", nullptr), identity_of(now, "cpu", nullptr)).empty());
}

}  // namespace sweep::sweepfile_parallel_test
