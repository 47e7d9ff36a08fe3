// The key "slurm", and --slurm.

#include "runmanager/config/slurm_spec.h"
#include "runmanager/sweepfile/slurm/slurm_reader.h"
#include "tests/support/sweep_folder.h"

#include "tests/support/test.h"

namespace sweep::testing::slurm_key_test {

std::string on_slurm(const std::string& keys) { return SweepFolder::with("\"slurm\": {" + keys + "}"); }

LoadOptions options(const std::vector<std::string>& words) {
  LoadOptions load;
  load.slurm = words;
  return load;
}

TEST(SlurmKey, SaysWhatTasksOfEachKindAskFor) {
  const SweepFolder folder;
  const SlurmSpec spec = slurm_spec(folder.load(on_slurm(
      R"("partition": "all", "time": "4:00:00", "gres": "gpu:2", "setup": "a", "tasks": 3,
         "cuda": {"partition": "gpu", "setup": ["b", "c"]}, "cpu": {"memory": "8G"})")));
  EXPECT_EQ(spec.tasks, 3);
  EXPECT_EQ(spec.cpu.partition, "all");
  EXPECT_EQ(spec.cpu.memory, "8G");
  EXPECT_EQ(spec.cpu.gres, "") << "GPUs are for runs on CUDA";
  EXPECT_THAT(spec.cpu.setup, ElementsAre("a"));
  EXPECT_EQ(spec.cuda.partition, "gpu");
  EXPECT_EQ(spec.cuda.time, "4:00:00");
  EXPECT_EQ(spec.cuda.memory, "");
  EXPECT_EQ(spec.cuda.gres, "gpu:2");
  EXPECT_THAT(spec.cuda.setup, ElementsAre("b", "c"));
}

TEST(SlurmKey, HasDefaults) {
  const SweepFolder folder;
  const SlurmSpec spec = slurm_spec(folder.load(SweepFolder::with("\"lr\": 0.1")));
  EXPECT_EQ(spec.tasks, 8);
  EXPECT_TRUE(spec.report);
  EXPECT_EQ(spec.cuda.gres, "");
}

TEST(SlurmKey, IsKeptForThoseWhoResume) {
  const SweepFolder folder;
  const Sweep sweep = folder.load(on_slurm(R"("tasks": 3)"), {},
                                  options({"time=30", "cuda.partition=gpu", "setup=a", "setup=b, c"}));
  EXPECT_EQ(sweep.resolved.at("slurm").dump(),
            R"({"tasks":3,"time":"30","cuda":{"partition":"gpu"},"setup":["a","b, c"]})");
  EXPECT_EQ(slurm_spec(sweep).cuda.partition, "gpu");
}

TEST(SlurmKey, AnOverrideSaysTheSameAsTheOption) {
  const SweepFolder folder;
  const std::string file = on_slurm(R"("tasks": 3)");
  const Sweep by_override = folder.load(file, {"slurm.cuda.gres=gpu:a100:4,tmp:10G", "slurm.exclude=n1,n2"});
  const Sweep by_option = folder.load(file, {}, options({"cuda.gres=gpu:a100:4,tmp:10G", "exclude=n1,n2"}));
  EXPECT_EQ(slurm_spec(by_override).cuda.gres, "gpu:a100:4,tmp:10G");
  EXPECT_EQ(by_override.resolved.at("slurm"), by_option.resolved.at("slurm"));
}

TEST(SlurmKey, CommandLineWins) {
  const SweepFolder folder;
  const std::string file = on_slurm(R"("tasks": 3, "setup": ["x"], "partition": "a")");
  const SlurmSpec spec = slurm_spec(folder.load(file, {}, options({"tasks=5", "setup=y", "partition=b"})));
  EXPECT_EQ(spec.tasks, 5);
  EXPECT_EQ(spec.cpu.partition, "b");
  EXPECT_THAT(spec.cpu.setup, ElementsAre("y"));
}

TEST(SlurmKey, IsNoPartOfWhatARunIs) {
  const SweepFolder folder;
  const Sweep with = folder.load(on_slurm(R"("tasks": 3)")),
              without = folder.load(SweepFolder::with("\"lr\": 0.01"));
  EXPECT_EQ(with.runs[0].name, without.runs[0].name);
  EXPECT_FALSE(with.runs[0].resolved.json().contains("slurm"));
}

TEST(SlurmMinutes, AreReadAsSbatchReadsThem) {
  EXPECT_EQ(slurm_minutes("30"), 30);
  EXPECT_EQ(slurm_minutes("30:30"), 31);
  EXPECT_EQ(slurm_minutes("4:00:00"), 240);
  EXPECT_EQ(slurm_minutes("1-12"), 36 * 60);
  EXPECT_EQ(slurm_minutes("1-0:05"), 24 * 60 + 5);
  EXPECT_EQ(slurm_minutes("1-0:0:1"), 24 * 60 + 1);
  EXPECT_EQ(slurm_minutes("UNLIMITED"), 0);
  for (const char* bad : {"", "x", "4h", "1:2:3:4", "-5", "1-", "1--2", "0", "99999999999999999999"})
    EXPECT_EQ(slurm_minutes(bad), -1) << bad;
}

TEST(SlurmGpus, AreCountedInWhatIsAskedFor) {
  EXPECT_EQ(slurm_gpus("gpu"), 1);
  EXPECT_EQ(slurm_gpus("gpu:2"), 2);
  EXPECT_EQ(slurm_gpus("gpu:a100:4,tmp:10G"), 4);
  EXPECT_EQ(slurm_gpus("gpu:a100"), 1);
  EXPECT_EQ(slurm_gpus(""), 0);
}

}  // namespace sweep::testing::slurm_key_test
