// What is made of the answers of Slurm's programs.
#include "runmanager/slurm/slurm_client.h"

#include "tests/runmanager/slurm/fake_slurm.h"

namespace sweep::testing::slurm_client_test {

class SlurmClientTest : public ::testing::Test {
 protected:
  std::string script() const { return folder_.write("task.sh", "#!/bin/bash\n").string(); }

  FakeSlurm slurm_;
  test::TemporaryDirectory folder_;
  SlurmClient client_;
};

TEST_F(SlurmClientTest, PassesEveryWordAsItIs) {
  const std::filesystem::path path = folder_.write("a b/$(touch x)'\".sh", "#!/bin/bash\n");
  EXPECT_EQ(client_.submit({"--job-name=it's $HOME", "--chdir=/tmp"}, path.string()), "101");
  EXPECT_THAT(slurm_.calls("sbatch")[0], HasSubstr("--job-name=it\\'s\\ \\$HOME"));
  EXPECT_FALSE(std::filesystem::exists("x"));
}

TEST_F(SlurmClientTest, TellsWhatIsNotInstalled) {
  slurm_.remove("sbatch");
  const test::Environment path("PATH", folder_.path().string());
  const std::string message = test::message_of<ConfigError>([&] { client_.submit({}, script()); });
  EXPECT_THAT(message, HasSubstr("sbatch: not installed, or not in PATH"));
}

TEST_F(SlurmClientTest, TellsWhatSlurmRefuses) {
  slurm_.fail("sbatch", "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  EXPECT_EQ(test::message_of<ConfigError>([&] { client_.submit({}, script()); }),
            "sbatch: error: Batch job submission failed: Invalid partition name specified");
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

TEST_F(SlurmClientTest, KnowsASlurmThatDoesNotAnswerFromOneThatRefuses) {
  slurm_.fail("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_THROW(client_.tasks({"1"}), SlurmUnreachable);
  slurm_.fail("sbatch",
              "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n");
  EXPECT_THROW(client_.submit({}, script()), SlurmUnreachable);
}

TEST_F(SlurmClientTest, EndsAProgramThatHangs) {
  slurm_.hang("squeue");
  SlurmClient impatient(std::chrono::milliseconds(200));
  EXPECT_THROW(impatient.tasks({"1"}), SlurmUnreachable);
}

TEST_F(SlurmClientTest, ReadsTasks) {
  slurm_.set_queue(
      "7|0|RUNNING|None\n7|1|PENDING|Resources\n8|N/A|PENDING|Dependency\n9|0|FAILED|NonZeroExitCode\n");
  EXPECT_THAT(client_.tasks({"7", "8"}),
              ElementsAre(SlurmTask{"7", "0", "RUNNING", "None"}, SlurmTask{"7", "1", "PENDING", "Resources"},
                          SlurmTask{"8", "", "PENDING", "Dependency"}));
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

TEST_F(SlurmClientTest, ReadsTheLargestArray) {
  slurm_.set_max_array_size(37);
  EXPECT_EQ(client_.max_array_size(), 37u);
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

}  // namespace sweep::testing::slurm_client_test
