// The key "slurm", and --slurm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runmanager/config/slurm_spec.h"
#include "runmanager/sweepfile/slurm/slurm_reader.h"
#include "tests/support/sweep_folder.h"

namespace sweep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

struct Mistake {
  std::string keys, message;
};

TEST(SlurmKey, MistakesSayWhatIsAllowed) {
  const SweepFolder folder;
  const Mistake mistakes[] = {
      {R"("partitoin": "a")",
       "s.json:2:11: slurm.partitoin: unknown key \"partitoin\", allowed: partition, account, "},
      {R"("partitoin": "a")", "did you mean \"partition\"?"},
      {R"("partition": "a b")", "slurm.partition: got \"a b\", want a string without spaces"},
      {R"("partition": 3)", "slurm.partition: got 3, want a string"},
      {R"("time": "4h")", "slurm.time: got \"4h\", want a time as sbatch takes it: \"30\" (minutes)"},
      {R"("time": 30)", "slurm.time: got 30, want a time"},
      {R"("time": "2:00")",
       "slurm.time: \"2:00\" is 2 minutes, want more than the 120 s of \"warning_seconds\""},
      {R"("memory": "8 G")", "slurm.memory: got \"8 G\", want memory as sbatch takes it"},
      {R"("gres": "gpu=2")", "slurm.gres: got \"gpu=2\", want resources"},
      {R"("tasks": 0)", "slurm.tasks: got 0, want an integer >= 1"},
      {R"("setup": ["a", "b\nc"])", "slurm.setup.1: got"},
      {R"("options": ["-a 3"])", "slurm.options.0: -a is set by the program itself"},
      {R"("options": ["--array=1-3"])", "--array is set by the program itself"},
      {R"("options": ["exclusive"])", "slurm.options.0: got \"exclusive\", want an option of sbatch"},
      {R"("cuda": {"tasks": 3})", "slurm.cuda.tasks: unknown key \"tasks\""},
      {R"("cuda": "gpu")", "slurm.cuda: got \"gpu\", want an object"},
      {R"("program": "bin/sweep")", "slurm.program: got \"bin/sweep\", want the absolute path"}};
  for (const Mistake& mistake : mistakes)
    EXPECT_THAT(folder.error(on_slurm(mistake.keys)), HasSubstr(mistake.message)) << mistake.keys;
  EXPECT_THAT(folder.error(SweepFolder::with("\"slurm\": 3")),
              HasSubstr("slurm: got 3, want an object with any of: partition"));
}

TEST(SlurmKey, MistakesOfTheCommandLineNameTheOption) {
  const SweepFolder folder;
  const std::string file = SweepFolder::with("\"lr\": 0.1");
  EXPECT_THAT(folder.error(file, {}, options({"partitoin=a"})),
              AllOf(HasSubstr("--slurm partitoin=a: slurm.partitoin: unknown key \"partitoin\""),
                    HasSubstr("did you mean \"partition\"?")));
  EXPECT_THAT(folder.error(file, {}, options({"gpu"})), HasSubstr("--slurm gpu: want KEY=VALUE"));
  EXPECT_THAT(folder.error(file, {}, options({"tasks=many"})), HasSubstr("got \"many\", want an integer"));
  EXPECT_THAT(folder.error(file, {}, options({"time=1", "time=2"})),
              HasSubstr("\"slurm.time\" is given twice"));
  EXPECT_THAT(folder.error(file, {}, options({"cuda.tasks=2"})),
              HasSubstr("slurm.cuda.tasks: unknown key \"tasks\""));
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

}  // namespace
}  // namespace sweep::testing
