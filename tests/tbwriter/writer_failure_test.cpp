// What happens when the disk does not take what is written, or the directory is not the writer's alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/base/error.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"
#include "tests/tbwriter/files.h"

namespace sweep::tbwriter {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no IoError";
}

// Lowers the largest size a file may have while it lives; the kernel then answers EFBIG, as a full disk does
// ENOSPC.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  ::rlimit before_{};
};

TEST(WriterFailure, IsKeptAndThrownByFlushAndCloseWithThePath) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run");
  writer.add_scalar("s", 0, 0);
  writer.flush();
  const FileSizeLimit limit(4096);
  for (int step = 1; step < 1000; ++step) writer.add_scalar("s", step, step);
  const std::string path = writer.path().string();
  EXPECT_THAT(message_of([&] { writer.flush(); }),
              testing::HasSubstr(path + ": cannot write: File too large"));
  EXPECT_NO_THROW(writer.add_scalar("s", 1000, 1000));
  EXPECT_THAT(message_of([&] { writer.flush(); }), testing::HasSubstr("File too large"));
  EXPECT_THAT(message_of([&] { writer.close(); }), testing::HasSubstr("File too large"));
  EXPECT_EQ(message_of([&] { writer.close(); }), "no IoError");
}

TEST(WriterFailure, LeavesWholeRecordsOnly) {
  const TemporaryDirectory directory;
  std::filesystem::path path;
  {
    WriterOptions options;
    options.warn = [](const std::string&) {};
    SummaryWriter writer(directory / "run", options);
    path = writer.path();
    const FileSizeLimit limit(1003);
    for (int step = 0; step < 1000; ++step) writer.add_scalar("s", step, step);
    EXPECT_THROW(writer.flush(), IoError);
  }
  const FileCheck check = check_events_file(path);
  EXPECT_EQ(check.end, ReadEnd::kEnd);
  EXPECT_GT(check.size, 900u);
  EXPECT_LE(check.size, 1003u);
}

TEST(WriterFailure, OfARemovedDirectoryIsNoticed) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run");
  std::filesystem::remove_all(directory / "run");
  writer.add_scalar("s", 1, 0);
  EXPECT_THAT(message_of([&] { writer.flush(); }),
              testing::HasSubstr("the file was removed while it was being written"));
  EXPECT_THAT(message_of([&] { writer.close(); }), testing::HasSubstr(writer.path().string()));
}

TEST(WriterFailure, OfTheDestructorIsAWarning) {
  const TemporaryDirectory directory;
  std::vector<std::string> warnings;
  {
    WriterOptions options;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    SummaryWriter writer(directory / "run", options);
    std::filesystem::remove_all(directory / "run");
    writer.add_scalar("s", 1, 0);
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], testing::HasSubstr("removed"));
}

TEST(WriterFailure, OfAnUnwritablePlaceComesFromTheConstructor) {
  const TemporaryDirectory directory;
  spill(directory / "file", "");
  EXPECT_THAT(message_of([&] { SummaryWriter writer(directory / "file"); }), testing::HasSubstr("file"));
  EXPECT_THAT(message_of([&] { SummaryWriter writer(directory / "file/run"); }),
              testing::HasSubstr("Not a directory"));
}

TEST(WriterFailure, OfASecondWriterInTheDirectoryNamesTheFirst) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run");
  const std::string message = message_of([&] { SummaryWriter second(directory / "run"); });
  EXPECT_THAT(message, testing::HasSubstr("another writer has this run's directory"));
  EXPECT_THAT(message, testing::HasSubstr(writer.path().filename().string()));
  writer.close();
  EXPECT_NO_THROW(SummaryWriter(directory / "run"));
}

TEST(WriterFailure, OfAKilledProcessLosesNoFlushedPointAndLocksNothing) {
  const TemporaryDirectory directory;
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

// Nothing else wakes the thread here, so an add that finds the queue full has to do it.
TEST(WriterQueue, StaysWithinItsBound) {
  const TemporaryDirectory directory;
  WriterOptions options;
  options.queue_bytes = 2000;
  options.flush_bytes = 1000000;
  options.flush_interval = std::chrono::hours(1);
  SummaryWriter writer(directory / "run", options);
  for (int step = 0; step < 5000; ++step) writer.add_scalar("s", step, step);
  writer.close();
  EXPECT_EQ(values_of(read_run(directory / "run"), "s").size(), 5000u);
}

}  // namespace
}  // namespace sweep::tbwriter
