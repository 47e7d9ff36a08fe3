#include "tbwriter/event_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "tbwriter/record.h"

namespace sweep::tbwriter {
namespace {

std::string reason(int error) { return std::strerror(error); }

// Bytes per write(). Small enough that a slow disk shows progress within write_timeout.
constexpr std::size_t kMaxWrite = std::size_t{1} << 20;

FileDescriptor lock_new_directory(const std::filesystem::path& directory, bool locks) {
  make_directories(directory);
  return locks ? lock_directory(directory) : FileDescriptor();
}

// "Never" as a time, and a queue without room, would fail in waiting. Without an interval the thread would
// spin, and without a timeout every wait for it would fail.
WriterOptions with_limits(WriterOptions options) {
  constexpr std::chrono::milliseconds kShortest{1}, kForever = std::chrono::years(1);
  options.flush_interval = std::clamp(options.flush_interval, kShortest, kForever);
  options.write_timeout = std::clamp(options.write_timeout, kShortest, kForever);
  options.queue_bytes = std::max<std::size_t>(options.queue_bytes, 1);
  return options;
}

FileDescriptor create_file(const std::filesystem::path& path) {
  FileDescriptor file = open_output_file(path, OutputMode::kNew);
  // Goes on at the end, without a gap, if another process has truncated the file.
  ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

}  // namespace

EventLog::EventLog(const std::filesystem::path& directory, const WriterOptions& options, double now,
                   Write write)
    : options_(with_limits(options)),
      write_(write ? std::move(write) : Write(::write)),
      lock_(lock_new_directory(directory, options.locks_directory)),
      path_(directory / (options.sorts_first ? first_event_file_name : new_event_file_name)(
                            list_event_files(directory), now)),
      file_(create_file(path_)) {}

std::shared_ptr<EventLog> EventLog::open(const std::filesystem::path& directory, const WriterOptions& options,
                                         double now, std::string_view first_records, Write write) {
  std::shared_ptr<EventLog> log(new EventLog(directory, options, now, std::move(write)));
  log->appended_ = first_records.size();
  // Written now: TensorBoard would not show a run whose file is empty.
  log->write_records(first_records, 0);
  if (log->failed_) log->throw_failure();
  const BlockSignals block;
  try {
    log->thread_ = start_thread("writes it", [log] { log->run(); });
  } catch (const std::exception& error) {
    throw IoError(log->path_.string() + ": " + error.what());
  }
  return log;
}

// In short waits: of the time for which the process was stopped (Ctrl-Z), one wait at most counts.
template <class Done>
bool EventLog::wait(std::unique_lock<std::mutex>& lock, Done done) {
  constexpr int kWaits = 20;
  const std::chrono::microseconds timeout = options_.write_timeout;
  std::uint64_t seen = written_;
  for (int waits = 0; !failed_ && !done(); seen = written_) {
    const auto news = [&] { return failed_ || done() || written_ != seen; };
    waits = done_.wait_for(lock, timeout / kWaits, news) ? 0 : waits + 1;
    if (waits < kWaits) continue;
    fail("the disk has taken nothing for " + std::to_string(options_.write_timeout.count()) + " ms while " +
         std::to_string(appended_ - written_) + " bytes wait for it");
    stalled_ = true;
  }
  return !failed_;
}

bool EventLog::wait_for_room(std::unique_lock<std::mutex>& lock) {
  if (is_forked()) return false;
  flush_wanted_ = true;  // queue_bytes may be smaller than flush_bytes, which the thread waits for
  wake_.notify_one();
  return wait(lock, [this] { return appended_ - written_ < options_.queue_bytes; });
}

void EventLog::flush(bool sync) {
  if (is_forked())
    throw IoError(path_.string() + ": a forked process cannot write it, only the one that opened it");
  std::unique_lock lock(mutex_);
  const std::uint64_t target = appended_;
  const auto is_done = [&] { return thread_done_ || (written_ >= target && (!sync || synced_ >= target)); };
  if (!is_done()) {
    flush_wanted_ = true;
    sync_wanted_ |= sync;
    wake_.notify_one();
    wait(lock, is_done);
  }
  if (!failed_ && sync && thread_done_ && synced_ < target && file_.get() >= 0) {
    // The thread has ended without it. The descriptor is a second one, as close() may close the first.
    const FileDescriptor file(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    lock.unlock();
    sync_file(file.get());
    lock.lock();
  }
  if (failed_) throw_failure();
}

void EventLog::close() {
  std::unique_lock lock(mutex_);
  if (closed_) return;
  closing_ = true;
  wake_.notify_one();
  wait(lock, [this] { return thread_done_; });
  // wait() returns at once after a failure. The thread then ends soon, unless it is stuck in a system call.
  done_.wait_for(lock, options_.write_timeout, [this] { return thread_done_ || stalled_; });
  closed_ = true;
  if (!thread_done_) {
    thread_.detach();  // It owns the log, and with it file and lock, until its system call returns.
    throw_failure();
  }
  lock.unlock();
  thread_.join();
  lock.lock();
  // Network file systems report a full disk only here.
  if (close_descriptor(file_.release()) != 0) fail("cannot close: " + reason(errno));
  ::flock(lock_.get(), LOCK_UN);  // A forked child that is still there has its descriptor.
  const FileDescriptor unlocked(lock_.release());
  if (failed_) throw_failure();
}

FilePosition EventLog::end() const {
  const std::lock_guard lock(mutex_);
  return {path_.filename().string(), appended_};
}

void EventLog::run() {
  bool out_of_memory = false;
  try {
    write_all();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
  const std::lock_guard lock(mutex_);
  if (out_of_memory && !failed_) failed_ = out_of_memory_ = true;
  thread_done_ = true;
  done_.notify_all();
}

void EventLog::write_all() {
  std::string taken;
  std::unique_lock lock(mutex_);
  while (!failed_) {
    wake_.wait_for(lock, options_.flush_interval,
                   [this] { return closing_ || flush_wanted_ || queue_.size() >= options_.flush_bytes; });
    flush_wanted_ = false;
    const bool sync = std::exchange(sync_wanted_, false);
    taken.clear();  // keeps its memory, which the next events are encoded into
    taken.swap(queue_);
    const std::uint64_t last_event = appended_events_;
    lock.unlock();
    write_records(taken, last_event);
    if (sync) sync_file(file_.get());
    lock.lock();
    if (sync) synced_ = written_;
    // With the same lock as the look, so that nobody waits for a thread that does not look again.
    thread_done_ = closing_ && queue_.empty() && !sync_wanted_;
    done_.notify_all();
    if (thread_done_) return;
  }
}

// `last_event` is the number of events that the file has after `bytes`.
void EventLog::write_records(std::string_view bytes, std::uint64_t last_event) {
  if (bytes.empty()) return;
  const std::uint64_t begin = written_;  // only this thread changes it
  std::size_t done = 0;
  int error = 0;
  while (done < bytes.size()) {
    const std::size_t size = std::min(bytes.size() - done, kMaxWrite);
    const ssize_t n = retry_interrupted([&] { return write_(file_.get(), bytes.data() + done, size); });
    error = n < 0 ? errno : 0;
    if (n < 0) break;
    done += static_cast<std::size_t>(n);
    if (done == bytes.size()) break;  // end_write() counts the last part
    const std::lock_guard lock(mutex_);
    if (failed_) break;
    written_ = begin + done;
    done_.notify_all();
  }
  struct ::stat status {};
  const bool removed = ::fstat(file_.get(), &status) == 0 && status.st_nlink == 0;
  const std::lock_guard lock(mutex_);
  if (done == bytes.size()) {
    written_ = begin + done;
    written_events_ = removed ? written_events_ : last_event;
    removed_ = removed;
    if (removed) fail("the file was removed while it was being written; its events are lost");
    done_.notify_all();
    return;
  }
  // Removes the incomplete record, so that readers see an intact file that ends early.
  std::size_t whole = 0;
  std::uint64_t missing = 0;
  for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(read_record(rest).size)) {
    const std::size_t end = bytes.size() - rest.size() + read_record(rest).size;
    if (end <= done) whole = end;
    if (end > done) ++missing;
  }
  written_events_ = std::max(written_events_, last_event - std::min(last_event, missing));
  const auto size = static_cast<off_t>(begin + whole);
  [[maybe_unused]] const int cut = retry_interrupted([&] { return ::ftruncate(file_.get(), size); });
  if (error != 0)
    fail("cannot write: " + reason(error) + "; the file is whole up to byte " + std::to_string(size));
}

void EventLog::sync_file(int file) {
  if (retry_interrupted([file] { return ::fdatasync(file); }) == 0) return;
  const int error = errno;
  const std::lock_guard lock(mutex_);
  fail("cannot sync: " + reason(error));
}

void EventLog::fail(const std::string& message) {
  if (failed_) return;
  failed_ = true;
  failure_ = path_.string() + ": " + message;
  done_.notify_all();
}

void EventLog::throw_failure() const {
  if (out_of_memory_) throw std::bad_alloc();
  const std::uint64_t missing = appended_events_ - written_events_ + refused_events_;
  const std::string lost = counted(missing, "event") + (missing == 1 ? " is" : " are") + " not in the file";
  const std::string text = failure_ + (missing == 0 ? "" : "; " + lost);
  if (removed_) throw DirectoryError(text);
  throw IoError(text);
}

}  // namespace sweep::tbwriter
