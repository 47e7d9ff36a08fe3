// The keys "parallel" and "accumulate".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "runmanager/records/run_identity.h"
#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::ElementsAre;
using testing::SweepFolder;

ParallelOptions parallel_of(const std::string& keys) {
  const SweepFolder folder;
  return folder.load(SweepFolder::with(keys)).runs.at(0).parallel;
}

TEST(Parallel, BadValuesAreNamedWithWhatIsAllowed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("parallel": 2)",
       "s.json:2:13: parallel: got 2, want none, or an object with any of: data, model, pipeline"},
      {R"("parallel": {"dta": 2})",
       "s.json:2:14: parallel.dta: unknown key \"dta\", allowed: data, model, pipeline, did you mean "
       "\"data\"?"},
      {R"("parallel": {"data": 0})", "s.json:2:22: parallel.data: got 0, want an integer >= 1 and <= 1024"},
      {R"("parallel": {"model": {}})",
       "s.json:2:23: parallel.model: got an empty object, want an object of layers and devices, such as "
       "{\"conv*\": "
       "\"cpu:0\", \"fc*\": \"cpu:1\"}"},
      {R"("parallel": {"model": {"fc1": 1}})",
       "s.json:2:31: parallel.model.fc1: got 1, want cpu, cuda, cuda:N or cpu:N (N is a device number from "
       "0)"},
      {R"("parallel": {"model": {"fc1": "auto"}})",
       "s.json:2:31: parallel.model.fc1: got \"auto\", want cpu, cuda, cuda:N or cpu:N (N is a device number "
       "from 0)"},
      {R"("parallel": {"model": {"fc1": "cpu", "out": "cuda:1"}})",
       "s.json:2:45: parallel.model.out: got cuda:1, but fc1 is on cpu, want devices of one kind"},
      {R"("parallel": {"model": {"fc9": "cpu"}})",
       "s.json:2:23: parallel.model: no layer fits \"fc9\", want one of 0, fc1, 2, out, did you mean "
       "\"fc1\"?"},
      {R"("device": "cuda", "parallel": {"model": {"fc1": "cpu:1"}})",
       "s.json:2:41: parallel.model: got cpu:1, but the run's device is cuda, want devices of one kind"},
      {R"("parallel": {"pipeline": 2})",
       "s.json:2:26: parallel.pipeline: got 2, want an object with any of: stages, micro_batches, schedule"},
      {R"("parallel": {"pipeline": {}})",
       "s.json:2:26: parallel.pipeline: \"stages\" is missing, want how many, or the layers they begin with"},
      {R"("parallel": {"pipeline": {"stages": 0}})",
       "s.json:2:37: parallel.pipeline.stages: got 0, want an integer >= 1 and <= 1024, or a list of layer "
       "names"},
      {R"("parallel": {"pipeline": {"stages": 3}})",
       "s.json:2:37: parallel.pipeline.stages: got 3, want at most 2, the number of layers with "
       "multiplications"},
      {R"("parallel": {"pipeline": {"stages": ["aut"]}})",
       "s.json:2:37: parallel.pipeline.stages: no layer fits \"aut\", want one of 0, fc1, 2, out, did you "
       "mean "
       "\"out\"?"},
      {R"("parallel": {"model": {"out": "cpu:1"}, "pipeline": {"stages": 2}})",
       "s.json:2:64: parallel.pipeline.stages: stages are those of \"model\", which names their devices; "
       "want "
       "one of both"},
      {R"("parallel": {"pipeline": {"stages": 2, "schedule": "1b1f"}})",
       "s.json:2:52: parallel.pipeline.schedule: got \"1b1f\", want gpipe or 1f1b, did you mean \"1f1b\"?"},
      {R"("accumulate": 0)", "s.json:2:15: accumulate: got 0, want an integer >= 1"},
  };
  const SweepFolder folder;
  for (const auto& [keys, message] : cases) EXPECT_EQ(folder.error(SweepFolder::with(keys)), message);
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

}  // namespace
}  // namespace sweep
