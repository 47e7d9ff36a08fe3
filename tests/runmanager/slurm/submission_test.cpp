// Which tasks are submitted, and what is known of them whatever goes wrong.
#include "runmanager/slurm/submission.h"

#include "tests/runmanager/slurm/fake_slurm.h"

namespace sweep::testing::submission_test {

constexpr SlurmShape kCpu{false, 1}, kCuda{true, 1};

class SubmissionTest : public ::testing::Test {
 protected:
  SubmissionTest() {
    options_.directory = folder_ / "a sweep";
    options_.name = "a sweep";
    options_.program = "/opt/sweep";
    fs::create_directories(options_.directory);
  }

  // The given numbers of unfinished runs of each shape: "cpu0", "cpu1", …
  Submission submit(const std::map<SlurmShape, std::size_t>& runs) {
    std::map<SlurmShape, std::vector<std::string>> names;
    for (const auto& [shape, count] : runs) {
      for (std::size_t i = 0; i < count; ++i) names[shape].push_back(shape_name(shape) + std::to_string(i));
    }
    return submit_runs(options_, names, client_);
  }
  // One for each task of the job.
  TaskLists lists_of(const SlurmJob& job) const {
    return read_task_lists(options_.directory, job.comment).value();
  }
  std::vector<SlurmJob> jobs() const { return read_slurm_jobs(options_.directory); }
  // What is said of these lines of squeue while so many runs are not done.
  std::string status_text(const std::string& queue, std::size_t runs) const {
    slurm_.set_queue(queue);
    SlurmClient client;  // which has not asked yet
    return slurm_status_text(slurm_status(options_.directory, client), runs, options_.directory);
  }

  test::TemporaryDirectory folder_;
  FakeSlurm slurm_;
  SlurmClient client_;
  SubmissionOptions options_;
};

TEST_F(SubmissionTest, HasAnArrayForEachKindAndAReportAfterThem) {
  const Submission submission = submit({{kCpu, 3}, {kCuda, 20}});
  ASSERT_THAT(submission.jobs, SizeIs(3));
  const std::vector<std::string> calls = slurm_.calls("sbatch");
  EXPECT_THAT(calls[0], AllOf(HasSubstr("--array=0-2 "), HasSubstr("--output=slurm/cpu-%A_%a.out"),
                              Not(HasSubstr("--gres"))));
  EXPECT_THAT(calls[1], AllOf(HasSubstr("--array=0-19%8 "), HasSubstr("--gres=gpu:1")));
  EXPECT_THAT(calls[2], HasSubstr("--dependency=afterany:101:102 "));
  EXPECT_THAT(read_file(options_.directory / "slurm/cuda.sh"), HasSubstr("exec /opt/sweep resume "));
  EXPECT_THAT(jobs(), SizeIs(3));
  EXPECT_EQ(jobs()[1].id, "102");
  EXPECT_EQ(jobs()[1].tasks, 20u);
}

TEST_F(SubmissionTest, DividesTheRunsIntoFourListsForEachTaskThatMayRunAtOnce) {
  options_.spec.tasks = 2;
  const Submission submission = submit({{kCpu, 19}});
  EXPECT_THAT(slurm_.calls("sbatch")[0], HasSubstr("--array=0-7%2 "));
  const TaskLists lists = lists_of(submission.jobs.at(0));
  ASSERT_THAT(lists, SizeIs(8));
  EXPECT_THAT(lists[0], ElementsAre("cpu0", "cpu8", "cpu16"));
  EXPECT_THAT(lists[7], ElementsAre("cpu7", "cpu15"));
  const test::Environment job("SLURM_ARRAY_JOB_ID", "101"), index("SLURM_ARRAY_TASK_ID", "7");
  EXPECT_EQ(runs_of_this_task(options_.directory, submission.jobs[0].comment), lists[7]);
  const test::Environment other("SLURM_ARRAY_TASK_ID", "8");
  EXPECT_THROW(runs_of_this_task(options_.directory, submission.jobs[0].comment), DataError);
}

TEST_F(SubmissionTest, SubmitsTheRunsThatAreInTheListOfNoLivingTask) {
  options_.spec.tasks = 2;
  submit({{kCpu, 19}});
  slurm_.set_queue(
      "101|0|RUNNING|None\n101|1|FAILED|NonZeroExitCode\n101|2|COMPLETED|None\n101|3|NODE_FAIL|None\n"
      "101|4|PENDING|Resources\n101|5|PENDING|Resources\n101|6|PENDING|Resources\n101|7|COMPLETING|None\n"
      "102|N/A|PENDING|Dependency\n");
  const Submission second = submit({{kCpu, 19}});
  EXPECT_EQ(second.live_tasks, 5u);
  ASSERT_THAT(second.jobs, SizeIs(2));
  EXPECT_THAT(
      lists_of(second.jobs[0]),
      ElementsAre(ElementsAre("cpu1"), ElementsAre("cpu2"), ElementsAre("cpu3"), ElementsAre("cpu9"),
                  ElementsAre("cpu10"), ElementsAre("cpu11"), ElementsAre("cpu17"), ElementsAre("cpu18")));
  EXPECT_THAT(slurm_.calls("sbatch")[2], HasSubstr("--array=0-7%1 ")) << "others run already";
  EXPECT_THAT(slurm_.calls("sbatch")[3], HasSubstr("--dependency=afterany:101:103 "));
  slurm_.set_queue("101|0|RUNNING|None\n101|1|RUNNING|None\n101|2|RUNNING|None\n101|3|PENDING|Resources\n");
  EXPECT_THAT(submit({{kCpu, 4}}).jobs, IsEmpty());
  EXPECT_THAT(submit({}).jobs, IsEmpty());
}

TEST_F(SubmissionTest, GivesTasksThatShareASearchNoLists) {
  options_.shared_tasks = 4;
  const Submission first = submit({{kCpu, 1}});
  ASSERT_THAT(first.jobs, SizeIs(2));
  EXPECT_THAT(slurm_.calls("sbatch")[0], HasSubstr("--array=0-3 "));
  EXPECT_FALSE(read_task_lists(options_.directory, first.jobs[0].comment));
  EXPECT_THAT(read_file(options_.directory / "slurm/cpu.sh"), Not(HasSubstr("--list")));
  slurm_.set_queue("101|0|RUNNING|None\n101|1|FAILED|NonZeroExitCode\n101|2|PENDING|Resources\n");
  submit({{kCpu, 1}});
  EXPECT_THAT(slurm_.calls("sbatch")[2], HasSubstr("--array=0-1 ")) << "two live";
  slurm_.set_queue("101|0|RUNNING|None\n101|2|RUNNING|None\n103|0|RUNNING|None\n103|1|PENDING|Resources\n");
  EXPECT_THAT(submit({{kCpu, 1}}).jobs, IsEmpty());
  EXPECT_THAT(submit({}).jobs, IsEmpty());
}

TEST_F(SubmissionTest, LeavesAllRunsToLivingTasksOfAnEarlierVersion) {
  const Submission first = submit({{kCpu, 2}});
  fs::remove(options_.directory / "slurm" / (first.jobs.at(0).comment + ".json"));
  slurm_.set_queue("101|0|RUNNING|None\n");
  EXPECT_THAT(submit({{kCpu, 9}}).jobs, IsEmpty());
  slurm_.set_queue("101|0|COMPLETED|None\n");
  EXPECT_THAT(submit({{kCpu, 9}}).jobs, SizeIs(2));
}

TEST_F(SubmissionTest, OneRunPerTaskIsOneArrayWithLongerListsWhereItWouldBeTooLarge) {
  options_.spec.runs_per_task = 1;
  options_.spec.tasks = 2;
  options_.spec.report = false;
  EXPECT_THAT(submit({{kCpu, 10}}).jobs, SizeIs(1));
  EXPECT_THAT(slurm_.calls("sbatch")[0], HasSubstr("--array=0-9%2 "));
  slurm_.set_max_array_size(4);
  const Submission submission = submit({{kCpu, 10}});
  ASSERT_THAT(submission.jobs, SizeIs(1)) << "several arrays would run more tasks at once";
  EXPECT_THAT(slurm_.calls("sbatch")[1], HasSubstr("--array=0-3%2 "));
  EXPECT_THAT(lists_of(submission.jobs[0])[0], ElementsAre("cpu0", "cpu4", "cpu8"));
}

TEST_F(SubmissionTest, TheLastJobCountsHowOftenItHasSubmitted) {
  options_.spec.max_restarts = 3;
  submit({{kCpu, 2}});
  EXPECT_THAT(read_file(options_.directory / "slurm/report.sh"), HasSubstr("SWEEP_SLURM_ROUND=1 "));
  const test::Environment round("SWEEP_SLURM_ROUND", "2");
  slurm_.set_queue("101|0|FAILED|None\n");
  submit({{kCpu, 2}});
  EXPECT_THAT(read_file(options_.directory / "slurm/report.sh"), HasSubstr("SWEEP_SLURM_ROUND=3 "));
}

TEST_F(SubmissionTest, TheLastJobLeavesAloneWhatSomebodyHasEnded) {
  options_.spec.tasks = 1;
  submit({{kCpu, 8}});
  slurm_.set_queue("101|0|CANCELLED|None\n101|1|FAILED|None\n101|2|COMPLETED|None\n101|3|CANCELLED|None\n");
  {
    const test::Environment round("SWEEP_SLURM_ROUND", "1");
    const Submission again = submit({{kCpu, 8}});
    EXPECT_EQ(again.given_up, 2u);
    EXPECT_THAT(lists_of(again.jobs.at(0)), ElementsAre(ElementsAre("cpu1"), ElementsAre("cpu2"),
                                                        ElementsAre("cpu5"), ElementsAre("cpu6")));
    slurm_.set_queue("101|0|CANCELLED|None\n101|3|CANCELLED|None\n103|0|COMPLETED|None\n");
    EXPECT_EQ(submit({{kCpu, 1}}).given_up, 1u) << "also after a later job: it holds back cpu0";
  }
  EXPECT_THAT(submit({{kCpu, 8}}).jobs, SizeIs(2)) << "a person asks for them";
  slurm_.set_queue("101|0|CANCELLED|None\n105|0|FAILED|None\n");
  const test::Environment round("SWEEP_SLURM_ROUND", "2");
  EXPECT_THAT(lists_of(submit({{kCpu, 1}}).jobs.at(0)), ElementsAre(ElementsAre("cpu0"))) << "lost since";
  options_.shared_tasks = 4;
  slurm_.set_queue("107|0|CANCELLED|None\n");
  EXPECT_THAT(submit({{kCpu, 1}}).jobs, IsEmpty());
}

TEST_F(SubmissionTest, KnowsNothingIfSlurmDoesNotAnswerAndSubmitsNothing) {
  submit({{kCpu, 2}});
  slurm_.fail("squeue", "slurm_load_jobs error: Unable to contact slurm controller\n");
  EXPECT_THROW(submit({{kCpu, 2}}), SlurmUnreachable);
  EXPECT_THAT(slurm_.calls("sbatch"), SizeIs(2));
}

TEST_F(SubmissionTest, FindsAJobWhoseAnswerWasLost) {
  options_.spec.report = false;
  slurm_.lose_answer("sbatch: error: Socket timed out on send/recv operation\n");
  EXPECT_EQ(submit({{kCpu, 2}}).jobs.at(0).id, "101");
  EXPECT_EQ(jobs().at(0).id, "101");
}

TEST_F(SubmissionTest, SubmitsTheRunsOfTasksThatEndAfterACancelToBeginAfterThem) {
  submit({{kCpu, 3}});
  slurm_.set_queue("101|0|RUNNING|None\n101|1|RUNNING|None\n102|N/A|PENDING|Dependency\n");
  cancel_jobs(options_.directory, client_);
  slurm_.set_queue("101|0|COMPLETING|None\n101|1|CANCELLED|None\n102|N/A|CANCELLED|None\n");
  const Submission second = submit({{kCpu, 3}});
  ASSERT_THAT(second.jobs, SizeIs(2));
  EXPECT_THAT(lists_of(second.jobs[0]),
              ElementsAre(ElementsAre("cpu0"), ElementsAre("cpu1"), ElementsAre("cpu2")));
  EXPECT_THAT(slurm_.calls("sbatch")[2],
              AllOf(HasSubstr("--array=0-2 "), HasSubstr("--dependency=afterany:101 ")));
}

TEST_F(SubmissionTest, FindsItLaterIfSlurmStaysAway) {
  options_.spec.report = false;
  slurm_.lose_answer("sbatch: error: Socket timed out on send/recv operation\n");
  slurm_.fail("squeue", "slurm_load_jobs error: Connection refused\n");
  // No job is known, so that squeue is not needed before sbatch.
  const std::string message = test::message_of<SlurmUnreachable>([&] { submit({{kCpu, 2}}); });
  EXPECT_THAT(message, AllOf(HasSubstr("Socket timed out"), HasSubstr("whether the job was taken is unknown"),
                             HasSubstr("sweep resume")));
  ASSERT_THAT(jobs(), SizeIs(1));
  EXPECT_EQ(jobs()[0].id, "");
  slurm_.fail("squeue", "");
  slurm_.set_queue("101|0|RUNNING|None\n101|1|PENDING|Resources\n");
  const Submission next = submit({{kCpu, 2}});
  EXPECT_THAT(next.jobs, IsEmpty());
  EXPECT_EQ(next.live_tasks, 2u);
  EXPECT_EQ(jobs().at(0).id, "101");
}

TEST_F(SubmissionTest, LeavesNoTraceOfAJobThatSlurmRefused) {
  slurm_.fail("sbatch", "sbatch: error: invalid partition specified: nope\n");
  EXPECT_EQ(test::message_of<ConfigError>([&] {
              submit({{kCpu, 2}});
            }),
            "sbatch: error: invalid partition specified: nope");
  EXPECT_THAT(jobs(), IsEmpty());
}

TEST_F(SubmissionTest, CancelsWhatLivesAndCanBeRepeated) {
  submit({{kCpu, 4}});
  slurm_.set_queue("101|0|RUNNING|None\n101|1|COMPLETED|None\n102|N/A|PENDING|Dependency\n");
  EXPECT_EQ(cancel_jobs(options_.directory, client_), 1u);
  EXPECT_THAT(slurm_.calls("scancel"), ElementsAre("scancel 101 102"));
  slurm_.set_queue("101|0|CANCELLED|None\n102|N/A|CANCELLED|None\n");
  EXPECT_EQ(cancel_jobs(options_.directory, client_), 0u);
  EXPECT_THAT(slurm_.calls("scancel"), SizeIs(1));
  EXPECT_TRUE(jobs()[0].cancelled);
}

TEST_F(SubmissionTest, DoesNotTakeTasksOfASlurmThatDoesNotAnswerForEnded) {
  submit({{kCpu, 2}});
  client_ = SlurmClient();
  slurm_.fail("squeue", "slurm_load_jobs error: Connection refused\n");
  const SlurmStatus status = slurm_status(options_.directory, client_);
  EXPECT_FALSE(status.known);
  EXPECT_THAT(slurm_status_text(status, 2, options_.directory),
              AllOf(HasSubstr("Connection refused"), Not(HasSubstr("no task is left"))));
}

TEST_F(SubmissionTest, SaysWhyTasksWaitAndWhatEndedBadly) {
  submit({{kCpu, 8}});
  EXPECT_THAT(
      status_text("101|0|RUNNING|None\n101|1|PENDING|Resources\n101|2|OUT_OF_MEMORY|OutOfMemory\n"
                  "101|3|COMPLETED|None\n102|N/A|PENDING|Dependency\n",
                  3),
      AllOf(HasSubstr("job 101, tasks on cpu: 1 run, 1 wait (Resources: the nodes it needs are busy)"),
            HasSubstr("1 out_of_memory"), HasSubstr("job 102, report: 1 wait"),
            Not(HasSubstr("no task is left"))));
  EXPECT_THAT(status_text("101|0|COMPLETED|None\n", 3),
              HasSubstr("3 runs are not done, and no task is left to train them"));
}

constexpr const char* kLaunchFailed =
    "101|0|RUNNING|None\n101|1|PENDING|launch failed requeued "
    "held\n101|2|PENDING|launch_failed_requeued_held\n"
    "101|3|PENDING|JobHeldUser\n101|4|PENDING|JobHeldAdmin\n102|N/A|PENDING|launch failed requeued held\n";

TEST_F(SubmissionTest, LetsTasksGoThatANodeCouldNotStartAndNoOthers) {
  submit({{kCpu, 5}});
  slurm_.set_queue(kLaunchFailed);
  const Submission submission = submit({{kCpu, 5}});
  EXPECT_THAT(slurm_.calls("scontrol release"), ElementsAre("scontrol release 101_1 101_2 102"));
  EXPECT_EQ(submission.released, 3u);
  EXPECT_THAT(submission.jobs, IsEmpty()) << "tasks that were let go train the runs";
  EXPECT_THAT(submission.held, ElementsAre(SlurmTask{"101", "3", "PENDING", "JobHeldUser"},
                                           SlurmTask{"101", "4", "PENDING", "JobHeldAdmin"}));
  EXPECT_THAT(slurm_status(options_.directory, client_).held_after_failed_launch(), IsEmpty());
  EXPECT_EQ(submit({{kCpu, 5}}).released, 0u);
  EXPECT_THAT(slurm_.calls("scontrol release"), SizeIs(1));
}

TEST_F(SubmissionTest, ATaskThatStartedMeanwhileNeedNotBeLetGo) {
  submit({{kCpu, 5}});
  slurm_.set_queue(kLaunchFailed);
  slurm_.fail("scontrol", "101_1: Job is no longer pending execution\n101_2: Job has already finished\n");
  EXPECT_NO_THROW(submit({{kCpu, 5}}));
  slurm_.fail("scontrol", "101_1: Job has already finished\n101_2: Access/permission denied\n");
  EXPECT_THAT(test::message_of<ConfigError>([&] { submit({{kCpu, 5}}); }), HasSubstr("permission denied"));
}

TEST_F(SubmissionTest, SaysWhatToDoAboutTasksThatAreHeld) {
  submit({{kCpu, 5}});
  EXPECT_THAT(status_text(kLaunchFailed, 5),
              AllOf(HasSubstr("launch failed requeued held: a node could not start it"),
                    HasSubstr("launch_failed_requeued_held: a node could not start it"),
                    HasSubstr("JobHeldUser: it is held: scontrol release lets it go"),
                    HasSubstr("JobHeldAdmin: an administrator holds it")));
  client_ = SlurmClient();
  EXPECT_THAT(slurm_status(options_.directory, client_).held_after_failed_launch(), SizeIs(3));
  EXPECT_THAT(slurm_.calls("scontrol release"), IsEmpty()) << "who only looks changes nothing";
}

TEST(ReasonText, KnowsReasonsOfOneAndOfSeveralWords) {
  EXPECT_EQ(reason_text("ReqNodeNotAvail, UnavailableNodes:n3"),
            "ReqNodeNotAvail, UnavailableNodes:n3: nodes it needs are down or reserved");
  EXPECT_THAT(reason_text("launch failed requeued held"), HasSubstr("sweep resume lets it go"));
  EXPECT_THAT(reason_text("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
                          "partitions"),
              HasSubstr("nodes it needs are down, drained or reserved"));
  EXPECT_EQ(reason_text("launch of something else"), "launch of something else");
}

class TaskEnd : public SubmissionTest {
 protected:
  test::Environment restarts_{"SWEEP_SLURM_RESTARTS", "2"}, job_{"SLURM_JOB_ID", "101"},
      array_{"SLURM_ARRAY_JOB_ID", "101"}, index_{"SLURM_ARRAY_TASK_ID", "7"},
      count_{"SLURM_RESTART_COUNT", nullptr};
};

TEST_F(TaskEnd, PutsItselfBackByTheNameOfItsTaskAsOftenAsItMay) {
  const auto end = [this](int code) { return end_slurm_task(code, options_.directory, false, client_); };
  EXPECT_TRUE(is_slurm_task());
  for (const int code : {0, 1, 3, 143}) EXPECT_EQ(end(code), code) << "other ends are left alone";
  {
    const test::Environment count("SLURM_RESTART_COUNT", "2");
    EXPECT_EQ(end(75), 75);
  }
  EXPECT_THAT(slurm_.calls(), IsEmpty());
  EXPECT_EQ(end(75), 75);
  EXPECT_THAT(slurm_.calls(), ElementsAre("scontrol requeue 101_7"));
  slurm_.fail("scontrol", "scontrol: error: Requested operation is presently disabled for job 101\n");
  EXPECT_EQ(end(75), 75) << "it survives a refusal";
}

TEST_F(TaskEnd, EndsTheOthersWhereOneFailureIsEnough) {
  submit({{kCpu, 4}});
  slurm_.set_queue("101|0|RUNNING|None\n");
  EXPECT_EQ(end_slurm_task(1, options_.directory, true, client_), 1);
  EXPECT_THAT(slurm_.calls("scancel"), ElementsAre("scancel 101"));
}

}  // namespace sweep::testing::submission_test
