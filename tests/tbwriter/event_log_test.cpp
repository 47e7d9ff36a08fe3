// The queue between callers and the disk, with disks that are slow, stand still, or are full.
#include "tbwriter/event_log.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <future>

#include "tbwriter/event_reader.h"
#include "tbwriter/record.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::event_log_test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A disk whose writes wait until it is let go on, except the first, which opens the file.
class StuckDisk {
 public:
  EventLog::Write write() {
    return [this, go = go_.get_future().share()](int fd, const void* data, std::size_t size) {
      if (writes_++ > 0) go.wait();
      return ::write(fd, data, size);
    };
  }
  void go_on() { go_.set_value(); }

 private:
  std::promise<void> go_;
  std::atomic<int> writes_ = 0;
};

// Room for 40 of the events that append() appends.
WriterOptions small_queue(std::chrono::milliseconds write_timeout) {
  return {.flush_interval = 1ms, .flush_bytes = 1000, .queue_bytes = 4000, .write_timeout = write_timeout};
}

WriterOptions unhurried(std::chrono::milliseconds write_timeout) {
  return {
      .flush_interval = 1h, .flush_bytes = 1 << 20, .queue_bytes = 1 << 20, .write_timeout = write_timeout};
}

std::shared_ptr<EventLog> open_log(const std::filesystem::path& directory, const WriterOptions& options,
                                   EventLog::Write write = {}) {
  std::string first;
  append_record(first, "first");
  return EventLog::open(directory, options, 1.7e9, first, std::move(write));
}

void append(EventLog& log, int count) {
  for (int i = 0; i < count; ++i)
    log.append([](std::string& buffer) { append_record(buffer, std::string(84, 'x')); });  // 100 bytes
}

double seconds_of(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The log's file goes away with the thread that was left behind.
void wait_for_end(std::shared_ptr<EventLog>& log) {
  const std::weak_ptr<EventLog> seen = log;
  log.reset();
  for (int i = 0; i < 1000 && !seen.expired(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(seen.expired());
}

using EventLog = test::InDirectory;

TEST_F(EventLog, AddsDoNotWaitForADiskThatStandsStillUntilTheQueueIsFull) {
  StuckDisk disk;
  auto log = open_log(directory.path(), small_queue(1h), disk.write());
  append(*log, 40);  // would wait for an hour
  disk.go_on();
  log->close();
  EXPECT_EQ(check_events_file(log->path()).records, 1u + 40u);
}

TEST_F(EventLog, OfADiskThatStandsStillFailsInsteadOfWaitingForEverAndSaysHowMuchIsMissing) {
  StuckDisk disk;
  auto log = open_log(directory.path(), small_queue(200ms), disk.write());
  append(*log, 40);
  // The 41st finds the queue full, waits 200 ms and is refused; those after it do not wait any more.
  EXPECT_GE(seconds_of([&] { append(*log, 960); }), 0.2);
  const std::string message = message_of<IoError>([&] { log->flush(false); });
  EXPECT_THAT(message, HasSubstr(log->path().string()));
  EXPECT_THAT(message, HasSubstr("the disk has taken nothing for 200 ms while 4000 bytes wait for it"));
  EXPECT_THAT(message, HasSubstr("1000 events are not in the file"));
  EXPECT_THAT(message_of<IoError>([&] { log->close(); }), HasSubstr("taken nothing"));
  const std::filesystem::path path = log->path();
  disk.go_on();
  wait_for_end(log);
  EXPECT_EQ(check_events_file(path).end, ReadEnd::kEnd) << "whole records only";
}

TEST_F(EventLog, FlushAndCloseDoNotWaitForEverEither) {
  for (const bool flush : {true, false}) {
    const TemporaryDirectory own;
    StuckDisk disk;
    auto log = open_log(own.path(), small_queue(200ms), disk.write());
    append(*log, flush ? 3 : 1);
    const std::string message = message_of<IoError>([&] { flush ? log->flush(true) : log->close(); });
    EXPECT_THAT(message, HasSubstr(flush ? "3 events are not in the file" : "1 event is not in the file"));
    if (flush) {
      EXPECT_THROW(log->close(), IoError);
    } else {
      EXPECT_NO_THROW(log->close()) << "reports once";
    }
    disk.go_on();
    wait_for_end(log);
  }
}

TEST_F(EventLog, WaitsForADiskThatIsSlowAndLosesNothing) {
  // Every write takes 50 bytes in 10 ms: longer than write_timeout for all of them, hardly ever for one.
  const auto write = [](int fd, const void* data, std::size_t size) {
    std::this_thread::sleep_for(10ms);
    return ::write(fd, data, std::min<std::size_t>(size, 50));
  };
  auto log = open_log(directory.path(), small_queue(1s), write);
  EXPECT_GT(seconds_of([&] {
              append(*log, 120);
              log->flush(false);
            }),
            1);
  log->close();
  EXPECT_EQ(check_events_file(log->path()).records, 1u + 120u);
}

TEST_F(EventLog, DoesNotTakeAStoppedProcessForADiskThatStandsStill) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto write = [writes = 0](int fd, const void* data, std::size_t size) mutable {
      if (writes++ > 0) {
        ::raise(SIGSTOP);
        std::this_thread::sleep_for(50ms);  // the disk takes as long when the process goes on
      }
      return ::write(fd, data, size);
    };
    auto log = open_log(directory.path(), unhurried(1s), write);
    append(*log, 1);
    try {
      log->flush(false);
    } catch (const IoError&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  std::this_thread::sleep_for(1100ms);
  ::kill(child, SIGCONT);
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(EventLog, OfAFullDiskCountsWhatIsNotInTheFile) {
  std::size_t room = 25 + 1050;  // the first record, and ten and a half
  const auto write = [&](int fd, const void* data, std::size_t size) -> ssize_t {
    if (room == 0) return errno = ENOSPC, -1;
    const ssize_t n = ::write(fd, data, std::min(size, room));
    room -= static_cast<std::size_t>(n);
    return n;
  };
  auto log = open_log(directory.path(), unhurried(1s), write);
  append(*log, 100);
  EXPECT_THAT(message_of<IoError>([&] { log->flush(false); }),
              AllOf(HasSubstr("No space left on device"), HasSubstr("90 events are not in the file")));
  append(*log, 5);
  EXPECT_THAT(message_of<IoError>([&] { log->close(); }), HasSubstr("95 events are not in the file"));
  EXPECT_EQ(check_events_file(log->path()).records, 1u + 10u);
  EXPECT_EQ(check_events_file(log->path()).end, ReadEnd::kEnd);
}

TEST_F(EventLog, DropsWhatAnEncoderHadAppendedWhenItThrew) {
  auto log = open_log(directory.path(), unhurried(2s));
  const auto half = [](std::string& buffer) {
    append_record(buffer, "whole");
    buffer += "half a record";
    throw std::bad_alloc();
  };
  EXPECT_THROW(log->append(half), std::bad_alloc);
  append(*log, 1);
  log->flush(false);
  EXPECT_THROW(log->append(half), std::bad_alloc);
  log->close();
  EXPECT_EQ(check_events_file(log->path()).records, 1u + 1u);
  EXPECT_EQ(check_events_file(log->path()).end, ReadEnd::kEnd);
}

TEST_F(EventLog, SyncsWhileAnotherThreadCloses) {
  for (int i = 0; i < 100; ++i) {
    const TemporaryDirectory own;
    auto log = open_log(own.path(), unhurried(2s));
    append(*log, 3);
    std::atomic<bool> starts = false;
    const auto sync = [&] {
      while (!starts) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(i));
      for (int n = 0; n < 10; ++n) log->flush(true);
    };
    std::future<void> other = std::async(std::launch::async, sync);
    starts = true;
    EXPECT_NO_THROW(log->close());
    EXPECT_NO_THROW(other.get());
  }
}

TEST_F(EventLog, LosesNothingOfAThreadThatWaitsForRoomWhileAnotherCloses) {
  StuckDisk disk;
  auto log = open_log(directory.path(),
                      {.flush_interval = 1ms, .flush_bytes = 1, .queue_bytes = 1, .write_timeout = 1h},
                      disk.write());
  append(*log, 1);
  std::future<void> adding = std::async(std::launch::async, [&] { append(*log, 1); });
  std::this_thread::sleep_for(50ms);
  std::future<void> closing = std::async(std::launch::async, [&] { log->close(); });
  std::this_thread::sleep_for(50ms);
  disk.go_on();
  closing.get();
  std::uint64_t added = 1;
  try {
    adding.get();
    ++added;
  } catch (const UsageError&) {
    // Was told.
  }
  EXPECT_EQ(check_events_file(log->path()).records, 1 + added);
}

TEST_F(EventLog, OfAThreadWithoutMemoryThrowsThatToItsCallers) {
  const auto write = [writes = 0](int fd, const void* data, std::size_t size) mutable {
    if (writes++ > 0) throw std::bad_alloc();
    return ::write(fd, data, size);
  };
  auto log = open_log(directory.path(), unhurried(2s), write);
  append(*log, 1);
  EXPECT_THROW(log->flush(false), std::bad_alloc);
  append(*log, 1);
  EXPECT_THROW(log->close(), std::bad_alloc);
}

}  // namespace sweep::tbwriter::event_log_test
