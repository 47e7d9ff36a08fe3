#include "runmanager/records/sweep_directory.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/run_world.h"
#include "tests/support/test.h"

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

TEST_F(SweepDirectoryTest, MakesTheDirectoryWithItsParents) {
  const SweepDirectory directory = SweepDirectory::open(temporary / "a/b", "name", false);
  EXPECT_TRUE(fs::is_directory(temporary / "a/b/name"));
  EXPECT_EQ(directory.name(), "name");
}

TEST_F(SweepDirectoryTest, RefusesASecondOwnerAndNamesTheFirst) {
  const SweepDirectory directory = open();
  EXPECT_THAT(test::message_of<IoError>([&] { open(); }),
              HasSubstr("process " + std::to_string(::getpid()) + " on "));
  EXPECT_THROW(check(), IoError);
}

TEST_F(SweepDirectoryTest, IsFreeAgainAfterItsOwnerEnded) {
  { const SweepDirectory directory = open(); }
  EXPECT_NO_THROW(open());
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
  fs::create_symlink(temporary / "precious", temporary / "name/.lock");
  EXPECT_THROW(open(), IoError);
  EXPECT_THROW(check(), IoError);
  EXPECT_EQ(tbwriter::slurp(temporary / "precious"), "mine");
  fs::remove(temporary / "name/.lock");
  fs::create_hard_link(temporary / "precious", temporary / "name/.lock");
  EXPECT_THROW(open(), IoError);
  EXPECT_EQ(tbwriter::slurp(temporary / "precious"), "mine");
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
    EXPECT_EQ(tbwriter::slurp(temporary / "name/.lock"), other);
  }
}

TEST_F(SweepDirectoryTest, DoesNotWaitForAPipeInPlaceOfItsLock) {
  fs::create_directories(temporary / "name");
  ASSERT_EQ(::mkfifo((temporary / "name/.lock").c_str(), 0600), 0);
  EXPECT_FALSE(SweepDirectory::is_held(temporary / "name"));
  EXPECT_THROW(open(), IoError);
}

}  // namespace sweep::sweep_directory_test
