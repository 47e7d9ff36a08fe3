// What happens when the disk does not take what is written, or the directory is not the writer's alone.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <future>

#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"
#include "tests/support/resource_limit.h"

namespace sweep::tbwriter::writer_failure_test {

using WriterFailure = test::InDirectory;
using SummaryWriterLongRun = test::InDirectory;

TEST_F(WriterFailure, IsKeptAndThrownByFlushAndCloseWithThePathAndLeavesWholeRecordsOnly) {
  SummaryWriter writer(directory / "run");
  writer.add_scalar("s", 0, 0);
  writer.flush();
  const test::ResourceLimit full_disk(RLIMIT_FSIZE, 1003);
  // What comes with it would end the process, but the writer's thread blocks all signals.
  std::signal(SIGXFSZ, SIG_DFL);
  for (int step = 1; step < 1000; ++step) writer.add_scalar("s", step, step);
  EXPECT_THAT(message_of<IoError>([&] { writer.flush(); }),
              HasSubstr(writer.path().string() + ": cannot write: File too large"));
  EXPECT_NO_THROW(writer.add_scalar("s", 1000, 1000));
  EXPECT_THAT(message_of<IoError>([&] { writer.flush(); }), HasSubstr("File too large"));
  EXPECT_THAT(message_of<IoError>([&] { writer.close(); }), HasSubstr("File too large"));
  EXPECT_NO_THROW(writer.close());
  const FileCheck check = check_events_file(writer.path());
  EXPECT_EQ(check.end, ReadEnd::kEnd);
  EXPECT_GT(check.bytes, 900u);
  EXPECT_LE(check.bytes, 1003u);
}

TEST_F(WriterFailure, OfADiskWithoutRoomComesFromTheConstructorUntilThereIsRoom) {
  {
    const test::ResourceLimit full_disk(RLIMIT_FSIZE, 10);
    EXPECT_THAT(message_of<IoError>([&] { SummaryWriter writer(directory / "run"); }),
                HasSubstr("File too large"));
  }
  SummaryWriter writer(directory / "later");
  writer.add_scalar("s", 1);
  EXPECT_NO_THROW(writer.close());
}

TEST_F(WriterFailure, ToStartItsThreadHasTheSystemsReason) {
  EXPECT_THAT(message_of<IoError>([&] {
                const test::AddressSpaceLimit no_more_stacks(1 << 20);
                std::deque<SummaryWriter> writers;  // the first ones may get the stacks of threads that ended
                for (int i = 0; i < 64; ++i) writers.emplace_back(directory / std::to_string(i));
              }),
              HasSubstr(": cannot start a thread that writes it: Resource temporarily unavailable"));
}

TEST_F(WriterFailure, OfARemovedDirectoryIsNoticed) {
  SummaryWriter writer(directory / "run");
  std::filesystem::remove_all(directory / "run");
  writer.add_scalar("s", 1, 0);
  EXPECT_THAT(message_of<IoError>([&] { writer.flush(); }),
              HasSubstr("the file was removed while it was being written"));
  EXPECT_THAT(message_of<IoError>([&] { writer.close(); }), HasSubstr(writer.path().string()));
}

TEST_F(WriterFailure, OfTheDestructorIsAWarning) {
  std::vector<std::string> warnings;
  {
    WriterOptions options;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    SummaryWriter writer(directory / "run", options);
    std::filesystem::remove_all(directory / "run");
    writer.add_scalar("s", 1, 0);
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("removed"));
}

TEST_F(WriterFailure, OfAnUnwritablePlaceComesFromTheConstructor) {
  spill(directory / "file", "");
  EXPECT_THAT(message_of<IoError>([&] { SummaryWriter writer(directory / "file"); }), HasSubstr("file"));
  EXPECT_THAT(message_of<IoError>([&] { SummaryWriter writer(directory / "file/run"); }),
              HasSubstr("Not a directory"));
}

TEST_F(WriterFailure, OfASecondWriterInTheDirectoryNamesTheFirst) {
  SummaryWriter writer(directory / "run");
  const std::string message = message_of<IoError>([&] { SummaryWriter second(directory / "run"); });
  EXPECT_THAT(message, HasSubstr("another writer has this run's directory"));
  EXPECT_THAT(message, HasSubstr(writer.path().filename().string()));
  writer.close();
  EXPECT_NO_THROW(SummaryWriter(directory / "run"));
}

TEST_F(WriterFailure, OfAKilledProcessLosesNoFlushedPointAndLocksNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    SummaryWriter writer(directory / "run");
    for (int step = 0; step < 1000; ++step) writer.add_scalar("s", step, step);
    writer.flush();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  SummaryWriter writer(directory / "run");
  writer.close();
  EXPECT_EQ(values_of(read_run(directory / "run"), "s").size(), 1000u);
}

// Forks a child that is stopped when it has been told that it cannot write, and killed if it has to wait.
pid_t forked_child(SummaryWriter& writer) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    writer.add_scalar("s", 5, 5);
    const std::string message = message_of<IoError>([&] { writer.flush(); });
    writer.close();
    if (message.find("a forked process cannot write it") == std::string::npos) ::_exit(1);
    ::raise(SIGSTOP);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  EXPECT_TRUE(WIFSTOPPED(status));
  return child;
}

TEST_F(WriterFailure, OfAForkedChildIsToldAtOnceAndNeitherLocksNorWritesTheParentsRun) {
  std::promise<void> locked, go_on;
  WriterOptions options = {.flush_interval = std::chrono::hours(1)};
  options.warn = [&](const std::string&) {
    locked.set_value();
    go_on.get_future().wait();
  };
  SummaryWriter writer(directory / "run", options);
  writer.add_scalar("s", 1, 1);
  writer.flush();
  std::vector<pid_t> children = {forked_child(writer)};
  // Warns of the step, and keeps the queue locked: in the child for good.
  std::jthread other([&] { writer.add_scalar("s", 0, 0); });
  locked.get_future().wait();
  children.push_back(forked_child(writer));
  go_on.set_value();
  other.join();
  writer.close();
  EXPECT_NO_THROW(SummaryWriter(directory / "run", {.purge_step = 2}));
  EXPECT_EQ(values_of(read_run(directory / "run"), "s").size(), 2u);
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

// A run of millions of points.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMillions = 1;  // A sanitizer's own memory grows with what it has seen.
#else
constexpr int kMillions = 4;
#endif

std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(SummaryWriterLongRun, OfMillionsOfScalarsTakesConstantMemoryAndLosesNone) {
  SummaryWriter writer(directory / "run", {.queue_bytes = std::size_t{4} << 20});
  std::int64_t after_first = 0;
  for (int million = 0; million < kMillions; ++million) {
    for (int i = 0; i < 1'000'000; ++i) {
      const int step = million * 1'000'000 + i;
      writer.add_scalar("Loss/train", step * 0.5, step);
    }
    writer.flush();
    if (million == 0) after_first = resident_bytes();
  }
  // A few times the queue, which the first million may not have filled; the points take 50 MB a million.
  EXPECT_LT(resident_bytes() - after_first, std::int64_t{16} << 20)
      << "bytes more than after the first million";
  writer.close();
  const FileCheck check = check_events_file(writer.path());
  EXPECT_EQ(check.end, ReadEnd::kEnd);
  EXPECT_EQ(check.records, kMillions * 1'000'000u + 2u) << "points, version and the session's start";
}

}  // namespace sweep::tbwriter::writer_failure_test
