// The scripts of jobs, run by the shell as they were submitted, with other programs in the place of sweep.
#include "core/base/child.h"
#include "core/base/file.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/slurm/shapes.h"
#include "runmanager/slurm/slurm_client.h"
#include "runmanager/slurm/submission.h"
#include "runmanager/sweep/trial_schedule.h"
#include "tests/runmanager/slurm/fake_slurm.h"
#include "tests/support/test.h"

namespace sweep::testing::batch_script_test {

class BatchScriptTest : public ::testing::Test {
 protected:
  BatchScriptTest() {
    // Says what it was called with, a word a line.
    write_program(
        "printf '%s\\n' \"$@\"\necho restarts=$SWEEP_SLURM_RESTARTS gpus=${CUDA_VISIBLE_DEVICES-unset} "
        "data=$SWEEP_DATA\n");
    use_directory("it's $HOME; touch x\nline");
    options_.name = "a";
    options_.spec.max_restarts = 7;
  }

  void write_program(const std::string& lines) {
    options_.program = folder_.write("a 'program'", "#!/bin/bash\n" + lines);
    fs::permissions(options_.program, fs::perms::owner_all);
  }
  void use_directory(const std::string& name) {
    options_.directory = folder_ / name;
    fs::create_directories(options_.directory);
  }
  // Submits a run of each of two kinds, and plays the script of a job as Slurm would.
  CommandResult run(const std::string& script = "cpu") {
    submit_runs(options_, {{{false, 1}, {"a"}}, {{true, 1}, {"b"}}}, client_);
    const std::string there = "cd " + shell_command({options_.directory.string()});
    return run_command({"/bin/bash", "-c", there + " && exec /bin/bash slurm/" + script + ".sh"},
                       [] { return true; });
  }

  test::TemporaryDirectory folder_;
  FakeSlurm slurm_;
  SlurmClient client_;
  test::Environment data_{"SWEEP_DATA", nullptr}, cpus_{"SLURM_CPUS_PER_TASK", nullptr},
      node_cpus_{"SLURM_CPUS_ON_NODE", nullptr}, gpus_{"CUDA_VISIBLE_DEVICES", nullptr};
  SubmissionOptions options_;
};

TEST_F(BatchScriptTest, CallsTheProgramWithHostilePathsAsTheyAre) {
  options_.options = {"--retry", "2"};
  const CommandResult result = run("cuda");
  const std::string list = read_slurm_jobs(options_.directory).at(1).comment;
  EXPECT_EQ(result.out, "resume\n" + options_.directory.string() + "\n--join\n--leave\n--quiet\n--list\n" +
                            list + "\n--retry\n2\n--threads\n1\nrestarts=7 gpus=unset data=\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(BatchScriptTest, DividesTheCoresOfATaskOverItsRuns) {
  const test::Environment cpus("SLURM_CPUS_PER_TASK", "9");
  for (const auto& [jobs, threads, word] : {std::tuple(1, 0, "9"), {4, 0, "2"}, {20, 0, "1"}, {1, 3, "3"}}) {
    options_.jobs = jobs;
    options_.threads = threads;
    EXPECT_THAT(run().out, HasSubstr(std::string("--threads\n") + word + "\n"));
  }
  options_.jobs = options_.threads = 0;
  EXPECT_THAT(run().out, Not(HasSubstr("--threads"))) << "the task divides them";
}

TEST_F(BatchScriptTest, HidesGpusFromRunsOnTheCpu) {
  const test::Environment gpus("CUDA_VISIBLE_DEVICES", "0");
  EXPECT_THAT(run("cpu").out, HasSubstr("gpus= "));
  EXPECT_THAT(run("cuda").out, HasSubstr("gpus=0 "));
}

TEST_F(BatchScriptTest, EndsWhereALineOfSetupFails) {
  options_.spec.cpu.setup = {"export FOO=bar", "false", "echo not here"};
  const CommandResult result = run();
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
}

TEST_F(BatchScriptTest, TakesTheDataDirectoryAlong) {
  const test::Environment data("SWEEP_DATA", "some 'data'");
  EXPECT_THAT(run().out, HasSubstr("data=" + (fs::current_path() / "some 'data'").string() + "\n"));
}

TEST_F(BatchScriptTest, ReportEndsWithWhetherAllIsDone) {
  write_program("echo \"$1\"\n[ \"$1\" != report ] || exit 5\n[ \"$3\" != --expect-done ] || exit 1\n");
  const test::Environment round("SWEEP_SLURM_ROUND", "7");
  const CommandResult result = run("report");
  EXPECT_EQ(result.out, "report\nshow\nstatus\n");
  EXPECT_EQ(result.code, 1);
}

TEST_F(BatchScriptTest, ReportSubmitsAgainWhatIsNotDoneAsOftenAsItMay) {
  write_program("echo \"$SWEEP_SLURM_ROUND ${@/$PWD/.}\"\n");
  options_.options = {"--retry", "2"};
  const test::Environment round("SWEEP_SLURM_ROUND", "6");
  EXPECT_EQ(run("report").out,
            "6 report .\n6 show .\n7 resume . --retry 2 --launcher slurm --no-retry-failed\n"
            "6 status . --expect-done\n");
  const test::Environment last("SWEEP_SLURM_ROUND", "7");
  EXPECT_THAT(run("report").out, Not(HasSubstr("resume")));
}

TEST_F(BatchScriptTest, IsSubmittedWithWhatTheFileAsksFor) {
  SlurmTasks& tasks = options_.spec.cpu;
  tasks.partition = "gpu";
  tasks.time = "4:00:00";
  tasks.memory = "16G";
  tasks.gres = "gpu:2";
  tasks.cpus = 3;
  tasks.options = {"--exclusive"};
  run();
  EXPECT_THAT(slurm_.calls("sbatch")[0],
              AllOf(HasSubstr(" --job-name=a --comment=sweep-"),
                    HasSubstr(" --nodes=1 --ntasks=1 --partition=gpu --time=4:00:00 --mem=16G --gres=gpu:2 "
                              "--cpus-per-task=3 --exclusive "),
                    HasSubstr(" --signal=B:USR2@120 ")));
}

TEST_F(BatchScriptTest, OpensItsOutputItselfWhereSlurmWouldChangeItsPath) {
  for (const char* name : {"50%A", "a\\b"}) {
    use_directory(name);
    const test::Environment job("SLURM_ARRAY_JOB_ID", "4"), task("SLURM_ARRAY_TASK_ID", "2");
    EXPECT_EQ(run().out, "");
    EXPECT_THAT(slurm_.calls("sbatch").back(), HasSubstr(" --output=/dev/null "));
    EXPECT_THAT(read_file(options_.directory / "slurm/cpu-4_2.out"), StartsWith("resume\n"));
  }
}

// What the tasks of a run are given, and how much of a search is left for them.

TEST(Shapes, HaveTheGpusOfAllStagesAndReplicasUpToTheLastThatIsNamed) {
  const struct {
    const char* device;
    ParallelOptions parallel;
    int devices;
  } cases[] = {{"cuda", {}, 1},
               {"cuda", {4, {}, {}}, 4},
               {"cuda", {2, {}, PipelineOptions{3, {}}}, 6},
               {"cuda", {1, {}, PipelineOptions{0, {"conv2", "fc1"}}}, 3},
               {"cuda", {2, {{"conv*", "cuda:0"}, {"fc*", "cuda:1"}}, {}}, 4},
               {"cuda", {1, {{"conv*", "cuda:2"}, {"fc*", "cuda:1"}}, {}}, 3},
               {"cuda", {2, {{"conv*", "cuda"}, {"fc*", "cuda:2"}}, {}}, 6},
               {"cpu", {4, {}, {}}, 1}};  // Cores are asked for by a key of their own.
  for (const auto& [device, parallel, devices] : cases) {
    RunConfig run;
    run.device = device;
    run.parallel = parallel;
    EXPECT_EQ(shape_of(run, {}).devices, devices);
  }
}

Sweep search_of(SearchMethod method, std::size_t trials, std::size_t at_once = 2) {
  Sweep sweep;
  SearchSpec& search = sweep.search.emplace();
  search.method = method;
  search.trials = trials;
  search.at_once = at_once;
  sweep.runs.resize(method == SearchMethod::kTpe ? at_once : trials);
  for (RunConfig& run : sweep.runs) run.epochs = 9;
  auto source = std::make_shared<TrialSource>();
  source->domain.dimensions.resize(1);
  source->domain.dimensions[0].high = 1;
  sweep.trials = std::move(source);
  return sweep;
}

// With the loss `loss` after each of `epochs` epochs.
RunRecord record(RunStatus status, int epochs, double loss = 1) {
  RunRecord run;
  run.status = status;
  for (int epoch = 1; epoch <= epochs; ++epoch)
    run.epochs.push_back(EpochRecord(epoch, {{"validation_loss", loss}}));
  return run;
}

const RunRecord kCompleted = record(RunStatus::kCompleted, 9), kFailed = record(RunStatus::kFailed, 2);

TEST(OpenTrials, OfTpeAreThoseThatHaveNotEndedOrCanBeChosen) {
  const Sweep sweep = search_of(SearchMethod::kTpe, 4);
  EXPECT_EQ(open_trials(sweep, {}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, record(RunStatus::kRunning, 3)}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, kCompleted, kCompleted}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, kCompleted, kCompleted, kCompleted}, true), 0u);
}

TEST(OpenTrials, CountThoseThatFailedWhereTheyAreTriedAgain) {
  const Sweep sweep = search_of(SearchMethod::kTpe, 4);
  const std::vector records{kCompleted, kFailed, kCompleted, kCompleted};
  EXPECT_EQ(open_trials(sweep, records, true), 1u);
  EXPECT_EQ(open_trials(sweep, records, false), 0u);
}

TEST(OpenTrials, OfAPopulationAreItsMembersAndTheNextCopy) {
  Sweep sweep = search_of(SearchMethod::kPopulation, 3);
  sweep.search->interval = 5;
  const RunRecord paused = record(RunStatus::kInterrupted, 5), pruned = record(RunStatus::kPruned, 5, 2);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, RunRecord{}, RunRecord{}}, true), 2u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, pruned, paused}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, pruned, paused, RunRecord{}}, true), 3u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, pruned, kCompleted, kCompleted}, true), 0u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, kFailed, kCompleted}, true), 1u) << "tried again";
  RunRecord copy = kCompleted;
  copy.config[std::string(kLineageKey)] = to_json(Lineage{{.run = "a", .until = 5, .params = {}}});
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, kFailed, kCompleted, copy}, true), 0u)
      << "but not after its copies were made";
}

TEST(OpenTrials, OfHalvingAreThoseThatItsRungsAskFor) {
  const Sweep sweep = search_of(SearchMethod::kHalving, 3);
  const RunRecord paused = record(RunStatus::kInterrupted, 3, 2);
  EXPECT_EQ(open_trials(sweep, std::vector{RunRecord{}, RunRecord{}, RunRecord{}}, true), 3u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, record(RunStatus::kInterrupted, 3, 1), paused}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, kCompleted, paused}, true), 0u);
}

// What is made of the answers of Slurm's programs.

class SlurmClientTest : public ::testing::Test {
 protected:
  std::string script() const { return folder_.write("task.sh", "#!/bin/bash\n").string(); }

  FakeSlurm slurm_;
  test::TemporaryDirectory folder_;
  SlurmClient client_;
};

TEST_F(SlurmClientTest, TellsWhatIsNotInstalled) {
  slurm_.remove("sbatch");
  const test::Environment path("PATH", folder_.path().string());
  const std::string message = test::message_of<ConfigError>([&] { client_.submit({}, script()); });
  EXPECT_THAT(message, HasSubstr("sbatch: not installed, or not in PATH"));
}

TEST_F(SlurmClientTest, TellsAllThatSlurmSaysInSeveralLines) {
  slurm_.fail("sbatch",
              "sbatch: error: QOSMaxSubmitJobPerUserLimit\r\n\nYour account \x1b[1;31mlab-17\x1b[0m has\n"
              "    no hours left.\nsbatch: error: Batch job submission failed: Job violates policy\n");
  EXPECT_EQ(test::message_of<ConfigError>([&] { client_.submit({}, script()); }),
            "sbatch:\n  sbatch: error: QOSMaxSubmitJobPerUserLimit\n  Your account lab-17 has\n"
            "      no hours left.\n  sbatch: error: Batch job submission failed: Job violates policy");
  slurm_.fail("squeue", "slurm_load_jobs error: Connection refused\nSee status.example\n");
  EXPECT_EQ(test::message_of<SlurmUnreachable>([&] { client_.tasks({"1"}); }),
            "squeue:\n  slurm_load_jobs error: Connection refused\n  See status.example");
}

TEST_F(SlurmClientTest, EndsAProgramThatHangs) {
  slurm_.hang("squeue");
  SlurmClient impatient(std::chrono::milliseconds(200));
  EXPECT_THROW(impatient.tasks({"1"}), SlurmUnreachable);
}

TEST_F(SlurmClientTest, TakesJobsThatSlurmHasForgottenForGone) {
  EXPECT_THAT(client_.tasks({"7"}), IsEmpty());
  slurm_.fail("scancel", "scancel: error: Kill job error on job id 7: Invalid job id specified\n");
  EXPECT_NO_THROW(client_.cancel({"7"}));
}

TEST_F(SlurmClientTest, AsksOnceAMinuteForWhoLooksAgainAndAgain) {
  slurm_.set_queue("7|0|RUNNING|None\n");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client_.recent_tasks({"7"}).tasks.size(), 1u);
  EXPECT_EQ(slurm_.calls("squeue").size(), 1u);
  slurm_.fail("squeue", "slurm_load_jobs error: Connection refused\n");
  SlurmClient other;
  for (int i = 0; i < 5; ++i) {
    const TaskQueue queue = other.recent_tasks({"7"});
    EXPECT_FALSE(queue.known);
    EXPECT_THAT(queue.error, HasSubstr("Connection refused"));
  }
  EXPECT_EQ(slurm_.calls("squeue").size(), 2u) << "nor one that does not answer more often";
  EXPECT_TRUE(client_.recent_tasks({}).known) << "of other jobs";
}

TEST(SlurmState, IsAliveUnlessItIsKnownToHaveEnded) {
  for (const char* state :
       {"PENDING", "RUNNING", "REQUEUED", "REQUEUE_HOLD", "COMPLETING", "SPECIAL_EXIT", "NEW_ONE"})
    EXPECT_TRUE(is_alive(state)) << state;
  for (const char* state :
       {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"})
    EXPECT_FALSE(is_alive(state)) << state;
  EXPECT_TRUE(is_running("COMPLETING"));
  EXPECT_FALSE(is_running("PENDING"));
}

}  // namespace sweep::testing::batch_script_test
