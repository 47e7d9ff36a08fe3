#include "runmanager/records/sweep_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/lock_file.h"
#include "tests/support/run_world.h"

namespace sweep::sweep_directory_test {

class SweepDirectoryTest : public ::testing::Test {
 protected:
  SweepDirectory open(const std::string& name = "name", bool fresh = false) const {
    return SweepDirectory::open(temporary.path(), name, fresh);
  }
  void check(const std::string& name = "name", bool fresh = false) const {
    SweepDirectory::check(temporary.path(), name, fresh);
  }

  TemporaryDirectory temporary;
};

TEST_F(SweepDirectoryTest, RefusesASecondOwnerAndNamesTheFirstUntilThatHasEnded) {
  {
    const SweepDirectory directory = open("a/b/name");
    EXPECT_EQ(directory.name(), "name");
    EXPECT_THAT(test::message_of<IoError>([&] { open("a/b/name"); }),
                HasSubstr("process " + std::to_string(::getpid()) + " on "));
    EXPECT_THROW(check("a/b/name"), IoError);
  }
  EXPECT_NO_THROW(open("a/b/name"));
}

TEST_F(SweepDirectoryTest, IsFreeAgainAfterItsOwnerWasKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const SweepDirectory directory = open();
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(test::message_of<IoError>([&] { open(); }), HasSubstr("process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(open());
}

TEST_F(SweepDirectoryTest, FreshTakesTheFirstFreeNumber) {
  EXPECT_EQ(open("name", true).name(), "name");
  EXPECT_EQ(open("name", true).name(), "name-2");
  EXPECT_EQ(open("name", true).name(), "name-3");
}

TEST_F(SweepDirectoryTest, FreshIsNeverRefusedBecauseOfOthersAtTheSameTime) {
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      std::vector<SweepDirectory> held;
      for (int i = 0; i < 50; ++i) {
        try {
          check("name", true);
          held.push_back(open("name", true));
        } catch (const IoError&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
}

TEST_F(SweepDirectoryTest, CheckRefusesAFileInTheWayAndMakesNothing) {
  tbwriter::spill(temporary / "file", "");
  EXPECT_THROW(SweepDirectory::check(temporary / "file", "name", false), IoError);
  EXPECT_THROW(SweepDirectory::check(temporary / "file/below", "name", false), IoError);
  EXPECT_THROW(SweepDirectory::open(temporary / "file/below", "name", false), IoError);
  EXPECT_NO_THROW(SweepDirectory::check(temporary / "new/logs", "name", false));
  EXPECT_FALSE(fs::exists(temporary / "new"));
}

TEST_F(SweepDirectoryTest, CheckRefusesADirectoryWithoutPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::create_directory(temporary / "locked");
  fs::permissions(temporary / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(SweepDirectory::check(temporary / "locked", "name", false), IoError);
}

TEST_F(SweepDirectoryTest, LeavesWhatALinkInPlaceOfItsLockPointsTo) {
  tbwriter::spill(temporary / "precious", "mine");
  fs::create_directories(temporary / "name");
  for (const auto link : {::symlink, ::link}) {
    ASSERT_EQ(link((temporary / "precious").c_str(), (temporary / "name/.lock").c_str()), 0);
    EXPECT_THROW(open(), IoError);
    EXPECT_THROW(check(), IoError);
    EXPECT_EQ(read_file(temporary / "precious"), "mine");
    fs::remove(temporary / "name/.lock");
  }
}

TEST_F(SweepDirectoryTest, IsNotWrittenThroughALinkButItsLogDirectoryMayBeOne) {
  fs::create_directories(temporary / "disk/precious");
  fs::create_directory_symlink(temporary / "disk", temporary / "runs");
  fs::create_directory_symlink(temporary / "disk/precious", temporary / "disk/name");
  fs::create_directory_symlink("nowhere", temporary / "disk/dangling");
  for (const char* name : {"name", "dangling"}) {
    EXPECT_THAT(test::message_of<IoError>([&] { SweepDirectory::check(temporary / "runs", name, false); }),
                HasSubstr((temporary / "runs" / name).string() + ": is a symbolic link"));
    EXPECT_THROW(SweepDirectory::open(temporary / "runs", name, false), IoError);
  }
  EXPECT_TRUE(fs::is_empty(temporary / "disk/precious"));
  EXPECT_THAT(
      test::message_of<IoError>([&] { SweepDirectory::check(temporary / "disk/dangling", "other", false); }),
      HasSubstr("/dangling: cannot make a log directory here: Not a directory"));
  EXPECT_NO_THROW(SweepDirectory::check(temporary / "runs", "other", false));
  EXPECT_EQ(SweepDirectory::open(temporary / "runs", "other", false).path(), temporary / "runs/other");
  EXPECT_TRUE(fs::exists(temporary / "disk/other"));
  EXPECT_EQ(SweepDirectory::open(temporary / "runs", "name", true).name(), "name-2");
}

TEST_F(SweepDirectoryTest, IsLockedAgainWhateverAPowerCutLeftOfItsLock) {
  fs::create_directories(temporary / "name");
  for (const std::string& left :
       {std::string(23, '\0'), std::string("proc"), std::string("proc") + std::string(19, '\0'),
        std::string("process 12") + std::string(13, '\0'), std::string()}) {
    tbwriter::spill(temporary / "name/.lock", left);
    EXPECT_NO_THROW(open()) << left;
  }
  for (const std::string& other : {std::string("mine"), std::string("\0mine", 5), std::string("process\n")}) {
    tbwriter::spill(temporary / "name/.lock", other);
    EXPECT_THROW(open(), IoError) << other;
    EXPECT_EQ(read_file(temporary / "name/.lock"), other);
  }
}

TEST_F(SweepDirectoryTest, DoesNotWaitForAPipeInPlaceOfItsLock) {
  fs::create_directories(temporary / "name");
  ASSERT_EQ(::mkfifo((temporary / "name/.lock").c_str(), 0600), 0);
  EXPECT_FALSE(SweepDirectory::is_held(temporary / "name"));
  EXPECT_THROW(open(), IoError);
}

class RunLockTest : public ::testing::Test {
 protected:
  std::optional<RunLock> try_lock() const { return RunLock::try_lock(temporary / "run"); }

  TemporaryDirectory temporary;
};
using LockFileTest = RunLockTest;
using SharedDirectoryTest = RunLockTest;

TEST_F(RunLockTest, IsHadByOneProcessAtATimeAndNamesIt) {
  std::optional<RunLock> lock = try_lock();
  ASSERT_TRUE(lock);
  EXPECT_TRUE(owns(lock->owner()));
  EXPECT_FALSE(try_lock());
  EXPECT_THAT(read_file(temporary / "run/.lock"),
              HasSubstr("process " + std::to_string(::getpid()) + " on "));
  const RunOwner before = lock->owner();
  lock.reset();
  const std::optional<RunLock> next = try_lock();
  ASSERT_TRUE(next);
  EXPECT_FALSE(owns(before));
  EXPECT_TRUE(owns(next->owner()));
}

TEST_F(RunLockTest, IsNotOwnedAnyMoreOnceItsFileIsAnothers) {
  const std::optional<RunLock> lost = try_lock();
  // As if the server had given the lock away: to a process on another machine, this one's does not count.
  fs::remove(temporary / "run/.lock");
  EXPECT_FALSE(owns(lost->owner()));
  const std::optional<RunLock> taken = try_lock();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(owns(lost->owner()));
}

TEST_F(RunLockTest, StaysWithTheChildThatTrainsWhenItsParentIsGone) {
  int ready[2], end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const std::optional<RunLock> lock = try_lock();
    if (::fork() == 0) {
      ::close(end[1]);
      char byte = 0;
      if (::write(ready[1], "x", 1) != 1 || ::read(end[0], &byte, 1) != 0) ::_exit(1);
      ::_exit(0);
    }
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_FALSE(try_lock());
  ::close(end[1]);
  bool is_free = false;
  for (int tries = 0; !is_free && tries < 1000; ++tries) {
    ::usleep(10000);
    is_free = try_lock().has_value();
  }
  EXPECT_TRUE(is_free);
}

TEST_F(RunLockTest, TellsInWhichStartTheRunFailedLast) {
  EXPECT_EQ(failed_start_of(temporary / "run"), "");
  try_lock()->note_failure("4711");
  EXPECT_EQ(failed_start_of(temporary / "run"), "4711");
  EXPECT_TRUE(try_lock());
  EXPECT_EQ(failed_start_of(temporary / "run"), "4711") << "also if one that had it was killed";
}

TEST_F(RunLockTest, IsNotTakenThroughALink) {
  fs::create_directories(temporary / "elsewhere");
  fs::create_directory_symlink(temporary / "elsewhere", temporary / "run");
  EXPECT_THROW(try_lock(), IoError);
  tbwriter::spill(temporary / "precious", "process 1 on mine\n");
  fs::create_directories(temporary / "other");
  fs::create_symlink(temporary / "precious", temporary / "other/.lock");
  EXPECT_THROW(RunLock::try_lock(temporary / "other"), IoError);
  EXPECT_TRUE(fs::is_empty(temporary / "elsewhere"));
  EXPECT_EQ(read_file(temporary / "precious"), "process 1 on mine\n");
}

TEST_F(LockFileTest, TellsWhoOfThisMachineHasLocks) {
  LockFile first(temporary / ".lock"), second(temporary / ".lock");
  const auto locks = [&first] { return locks_here(read_file("/proc/locks"), first); };
  ASSERT_TRUE(first.try_lock(LockKind::kShared));
  if (locks().empty()) GTEST_SKIP() << "the kernel does not tell, or calls this disk by another number";
  EXPECT_THAT(locks(), ElementsAre(::getpid()));
  ASSERT_TRUE(second.try_lock(LockKind::kShared));
  EXPECT_THAT(locks(), ElementsAre(::getpid(), ::getpid()));
  EXPECT_FALSE(second.try_lock(LockKind::kExclusive));
  EXPECT_THAT(locks(), ElementsAre(::getpid())) << "who cannot change its lock has none";
}

TEST_F(SharedDirectoryTest, IsPlannedByTheFirstWhoseStartTheOthersJoin) {
  const auto never = [] { return 0; };
  const auto expect_alone = [](bool want) { return [want](bool alone) { EXPECT_EQ(alone, want); }; };
  {
    SweepDirectory first = SweepDirectory::join(temporary.path(), "name");
    ASSERT_TRUE(first.plan("one", expect_alone(true), never));
    SweepDirectory second = SweepDirectory::join(temporary.path(), "name");
    ASSERT_TRUE(second.plan("two", expect_alone(false), never));
    EXPECT_EQ(second.start(), "one");
    EXPECT_TRUE(SweepDirectory::is_held(temporary / "name"));
    EXPECT_THROW(SweepDirectory::open(temporary.path(), "name", false), IoError);
    bool acted = false;
    first.stop_working();
    first.act_alone([&] { acted = true; });
    EXPECT_FALSE(acted);
    second.stop_working();
    first.act_alone([&] { acted = true; });
    EXPECT_TRUE(acted);
    EXPECT_FALSE(SweepDirectory::is_held(temporary / "name"));
  }
  SweepDirectory next = SweepDirectory::join(temporary.path(), "name");
  ASSERT_TRUE(next.plan("three", expect_alone(true), never));
  EXPECT_EQ(next.start(), "three");
}

TEST(SharedDirectory, IsRefusedWhereLocksHoldOnOneMachine) {
  const auto why = [](const std::string& type, const std::string& options) {
    return why_locks_are_local(
        "/dev/sda / ext4 rw 0 0\nserver:/x /my\\040runs " + type + " rw," + options + " 0 0\n",
        "/my runs/a/b");
  };
  using Row = std::pair<const char*, const char*>;
  for (const auto& [type, options] : {Row("nfs4", "local_lock=none"), Row("nfs4", "local_lock=posix"),
                                      Row("lustre", "flock"), Row("fuse.glusterfs", "x")})
    EXPECT_EQ(why(type, options), "");
  for (const auto& [type, option] : {Row("nfs4", "local_lock=all"), Row("nfs", "local_lock=flock"),
                                     Row("nfs", "nolock"), Row("lustre", "localflock")})
    EXPECT_EQ(why(type, option + std::string(",addr=1")), type + std::string(" is mounted with ") + option);
  EXPECT_THAT(why("fuse.sshfs", "user_id=0"), HasSubstr("fuse.sshfs is not known to pass locks on"));
  EXPECT_EQ(why("fuseblk", "x"), "") << "a disk of this machine";
  EXPECT_EQ(why_locks_are_local("s:/x /my nfs rw,nolock 0 0\n", "/mine/a"), "");
}

TEST_F(SharedDirectoryTest, OfAnEarlierVersionGivesUpItsClaimsAndKeepsTheNewestCheckpoints) {
  fs::create_directories(temporary / ".claims/members");
  fs::create_directories(temporary / "run");
  const fs::path older = temporary / "run/checkpoint.3f2a9c01d2e4b6a8-1.safetensors";
  tbwriter::spill(older, "older");
  fs::last_write_time(older, fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (const auto& [begin, end] : {std::pair("checkpoint.", ""), {"checkpoint.", ".previous"}, {"best.", ""}})
    tbwriter::spill(temporary / "run" / (begin + std::string("3f2a9c01d2e4b6a9-12") + end + ".safetensors"),
                    begin + std::string(end));
  adopt_attempts(temporary.path());
  EXPECT_EQ(read_file(temporary / "run/checkpoint.safetensors"), "checkpoint.");
  EXPECT_EQ(read_file(temporary / "run/checkpoint.previous.safetensors"), "checkpoint..previous");
  EXPECT_EQ(read_file(temporary / "run/best.safetensors"), "best.");
  EXPECT_FALSE(fs::exists(older));
  EXPECT_FALSE(fs::exists(temporary / ".claims"));
}

TEST_F(SharedDirectoryTest, LeavesWhatALinkCalledClaimsPointsTo) {
  fs::create_directories(temporary / "sweep");
  fs::create_directories(temporary / "elsewhere/members");
  fs::create_directory_symlink(temporary / "elsewhere", temporary / "sweep/.claims");
  adopt_attempts(temporary / "sweep");
  EXPECT_TRUE(fs::exists(temporary / "elsewhere/members"));
  EXPECT_TRUE(fs::is_symlink(temporary / "sweep/.claims"));
}

}  // namespace sweep::sweep_directory_test
