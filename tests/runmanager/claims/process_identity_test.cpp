// Which processes are known to have ended without waiting.
#include "runmanager/claims/process_identity.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/environment.h"

namespace sweep {
namespace {

using test::Environment;

TEST(ProcessIdentity, SurvivesBeingWritten) {
  const Environment job("SLURM_ARRAY_JOB_ID", "815"), task("SLURM_ARRAY_TASK_ID", "2"),
      restarts("SLURM_RESTART_COUNT", "3"), rank("SLURM_PROCID", nullptr);
  const ProcessIdentity here = this_process();
  const auto read = parse_process_identity(to_text(here));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_text(*read), to_text(here));
  EXPECT_EQ(read->task, "815_2");
  EXPECT_EQ(read->restarts, 3);
  EXPECT_FALSE(parse_process_identity("ended by somebody\n{}"));
  EXPECT_FALSE(parse_process_identity(""));
}

TEST(ProcessIdentity, IsAnotherEachTime) { EXPECT_NE(this_process().id, this_process().id); }

TEST(ProcessIdentity, HasNotEndedWhileItRuns) {
  EXPECT_FALSE(has_certainly_ended(this_process(), this_process()));
}

TEST(ProcessIdentity, HasEndedIfItsNumberIsFreeOrAnotherProcesss) {
  const ProcessIdentity here = this_process();
  ProcessIdentity other = this_process();
  ++other.begin;
  EXPECT_TRUE(has_certainly_ended(other, here));
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  other = this_process();
  other.pid = pid;
  EXPECT_TRUE(has_certainly_ended(other, here));
}

TEST(ProcessIdentity, IsNotJudgedByItsNumberOnAnotherMachineOrInAnotherNamespace) {
  const ProcessIdentity here = this_process();
  ProcessIdentity other = this_process();
  ++other.begin;
  other.boot = "another";
  EXPECT_FALSE(has_certainly_ended(other, here));
  other.boot = here.boot;
  other.pids = "pid:[1]";
  EXPECT_FALSE(has_certainly_ended(other, here));
}

TEST(ProcessIdentity, HasEndedIfItsSlurmTaskWasStartedAgain) {
  ProcessIdentity here = this_process(), other = this_process();
  other.boot = "another";
  here.task = other.task = "815_2";
  EXPECT_FALSE(has_certainly_ended(other, here));
  here.restarts = 1;
  EXPECT_TRUE(has_certainly_ended(other, here));
  EXPECT_FALSE(has_certainly_ended(here, other));
  here.task = "815_3";
  EXPECT_FALSE(has_certainly_ended(other, here));
}

}  // namespace
}  // namespace sweep
