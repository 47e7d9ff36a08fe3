#include "tbwriter/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/block_signals.h"
#include "core/base/retry.h"
#include "tbwriter/record.h"

namespace sweep::tbwriter {
namespace {

std::string reason(int error) { return std::strerror(error); }

// Bytes per write(). Small enough that a slow disk shows progress within longest_wait.
constexpr std::size_t kMaxWrite = std::size_t{1} << 20;

// The size of the complete records in the first `limit` bytes.
std::size_t whole_records(std::string_view bytes, std::size_t limit) {
  std::size_t end = 0;
  while (end < limit) {
    const RecordView record = read_record(bytes.substr(end));
    if (record.size == 0 || end + record.size > limit) break;
    end += record.size;
  }
  return end;
}

std::uint64_t count_records(std::string_view bytes) {
  std::uint64_t count = 0;
  while (!bytes.empty()) {
    const RecordView record = read_record(bytes);
    if (record.size == 0 || record.size > bytes.size()) break;
    bytes.remove_prefix(record.size);
    ++count;
  }
  return count;
}

}  // namespace

EventLog::EventLog(const std::filesystem::path& directory, const EventLogOptions& options,
                   std::function<std::string()> file_header)
    : directory_(directory), options_(options), file_header_(std::move(file_header)) {}

std::shared_ptr<EventLog> EventLog::open(const std::filesystem::path& directory,
                                         const EventLogOptions& options, double now,
                                         std::string_view first_records,
                                         std::function<std::string()> file_header) {
  std::shared_ptr<EventLog> log(new EventLog(directory, options, std::move(file_header)));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError(directory.string() + ": cannot create the run's directory: " + error.message());
  if (options.locks_directory) log->lock_ = lock_directory(directory);
  log->session_ = next_session(list_event_files(directory), now);
  log->queue_.emplace_back();
  log->file_bytes_ = first_records.size();
  log->appended_ = log->pending_ = first_records.size();
  log->open_file(0);
  // Written now: TensorBoard would not show a run whose file is empty.
  log->write_segment({0, std::string(first_records)});
  if (log->failed_) log->throw_failure();
  const BlockSignals block;
  try {
    log->thread_ = std::thread([log] { log->run(); });
  } catch (...) {
    throw IoError(log->path_.string() + ": cannot start the thread that writes it");
  }
  return log;
}

template <class Done>
bool EventLog::wait(std::unique_lock<std::mutex>& lock, Done done) {
  std::uint64_t seen = written_;
  while (!failed_ && !done()) {
    const auto news = [&] { return failed_ || done() || written_ != seen; };
    if (!done_.wait_for(lock, options_.longest_wait, news)) {
      fail(path_.string() + ": the disk has taken nothing for " +
           std::to_string(options_.longest_wait.count()) + " ms while " + std::to_string(pending_) +
           " bytes wait for it");
      stalled_ = true;
    }
    seen = written_;
  }
  return !failed_;
}

bool EventLog::wait_for_room(std::unique_lock<std::mutex>& lock) {
  flush_wanted_ = true;  // queue_bytes may be smaller than flush_bytes, which the thread waits for
  wake_.notify_one();
  return wait(lock, [this] { return pending_ < options_.queue_bytes; });
}

void EventLog::begin_file() {
  const unsigned next = queue_.back().file + 1;
  queue_.push_back({next, file_header_()});
  file_bytes_ = queue_.back().bytes.size();
  appended_ += file_bytes_;
  pending_ += file_bytes_;
}

void EventLog::flush(bool sync) {
  std::unique_lock lock(mutex_);
  if (!closed_) {
    const std::uint64_t target = appended_;
    flush_wanted_ = true;
    sync_wanted_ |= sync;
    wake_.notify_one();
    wait(lock, [&] { return written_ >= target && (!sync || synced_ >= target); });
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
  done_.wait_for(lock, options_.longest_wait, [this] { return thread_done_ || stalled_; });
  closed_ = true;
  if (!thread_done_) {
    thread_.detach();  // It owns the log, and with it file and lock, until its system call returns.
    throw_failure();
  }
  lock.unlock();
  thread_.join();
  lock.lock();
  if (file_.get() >= 0) {
    // Network file systems report a full disk only here.
    if (close_descriptor(file_.release()) != 0) fail(path_.string() + ": cannot close: " + reason(errno));
  }
  lock_.reset();
  if (failed_) throw_failure();
}

std::filesystem::path EventLog::path() const {
  std::unique_lock lock(mutex_);
  return path_;
}

FilePosition EventLog::end() const {
  std::unique_lock lock(mutex_);
  return {event_file_name(session_, queue_.back().file), file_bytes_};
}

void EventLog::run() {
  bool out_of_memory = false;
  try {
    write_all();
  } catch (const std::bad_alloc&) {
    out_of_memory = true;
  }
  const std::unique_lock lock(mutex_);
  if (out_of_memory && !failed_) failed_ = out_of_memory_ = true;
  thread_done_ = true;
  done_.notify_all();
}

void EventLog::write_all() {
  std::unique_lock lock(mutex_);
  while (!failed_) {
    wake_.wait_for(lock, options_.flush_interval,
                   [this] { return closing_ || flush_wanted_ || pending_ >= options_.flush_bytes; });
    flush_wanted_ = false;
    const bool sync = std::exchange(sync_wanted_, false);
    std::deque<Segment> taken;
    taken.swap(queue_);
    queue_.push_back({taken.back().file, std::move(spare_)});
    lock.unlock();
    for (const Segment& segment : taken) write_segment(segment);
    if (sync) sync_file();
    lock.lock();
    if (sync) synced_ = written_;
    spare_ = std::move(taken.back().bytes);
    spare_.clear();
    done_.notify_all();
    if (closing_ && pending_ == 0 && !sync_wanted_) return;
  }
}

void EventLog::write_segment(const Segment& segment) {
  if (segment.file != file_number_) {
    sync_file();  // sync() covers all files but syncs only the newest one, so older ones are synced here.
    open_file(segment.file);
  }
  const std::string_view bytes = segment.bytes;
  std::size_t done = 0;
  std::size_t last = bytes.size();  // bytes that are not counted as written yet
  int error = 0;
  while (done < bytes.size() && error == 0) {
    {
      const std::unique_lock lock(mutex_);
      if (failed_) break;
    }
    const std::size_t some = std::min(bytes.size() - done, kMaxWrite);
    const ssize_t n = options_.write ? options_.write(file_.get(), bytes.data() + done, some)
                                     : ::write(file_.get(), bytes.data() + done, some);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error = errno;
      break;
    }
    done += static_cast<std::size_t>(n);
    // The last part is counted by end_segment(), once it has checked that the file has not been removed.
    if (done == bytes.size()) break;
    const std::unique_lock lock(mutex_);
    count_written(static_cast<std::size_t>(n));
    last = bytes.size() - done;
  }
  end_segment(segment, done, last, error);
}

void EventLog::count_written(std::size_t bytes) {
  written_ += bytes;
  pending_ -= bytes;
  done_.notify_all();
}

// Accounts for a segment of which `done` bytes were written; the last `last` bytes of it are not counted as
// written yet. `error` is the errno that stopped it, or 0.
void EventLog::end_segment(const Segment& segment, std::size_t done, std::size_t last, int error) {
  if (segment.bytes.empty()) return;
  struct ::stat status {};
  const bool removed = ::fstat(file_.get(), &status) == 0 && status.st_nlink == 0;
  const std::unique_lock lock(mutex_);
  if (done == segment.bytes.size()) {
    path_bytes_ += done;
    if (removed) {
      fail(path_.string() + ": the file was removed while it was being written; its events are lost");
    } else {
      written_events_ += segment.events;
    }
    count_written(last);
    return;
  }
  // Removes the incomplete record, so that readers see an intact file that ends early.
  const std::size_t whole = whole_records(segment.bytes, done);
  const std::uint64_t missing = count_records(std::string_view(segment.bytes).substr(whole));
  written_events_ += segment.events - std::min(segment.events, missing);
  path_bytes_ += whole;
  if (file_.get() >= 0) {
    [[maybe_unused]] const int cut =
        retry_interrupted([this] { return ::ftruncate(file_.get(), static_cast<off_t>(path_bytes_)); });
  }
  if (error != 0) {
    fail(path_.string() + ": cannot write: " + reason(error) + "; the file is whole up to byte " +
         std::to_string(path_bytes_));
  }
}

void EventLog::sync_file() {
  if (retry_interrupted([this] { return ::fdatasync(file_.get()); }) == 0) return;
  const int error = errno;
  std::unique_lock lock(mutex_);
  fail(path_.string() + ": cannot sync: " + reason(error));
}

void EventLog::open_file(unsigned number) {
  const std::filesystem::path path = directory_ / event_file_name(session_, number);
  Descriptor file(retry_interrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644); }));
  const int error = errno;
  std::unique_lock lock(mutex_);
  path_ = path;
  path_bytes_ = 0;
  file_number_ = number;
  if (file.get() < 0) {
    fail(path.string() + ": cannot create the events file: " + reason(error));
    return;
  }
  file_ = std::move(file);
}

void EventLog::fail(const std::string& message) {
  if (failed_) return;
  failed_ = true;
  failure_ = message;
  done_.notify_all();
}

void EventLog::throw_failure() const {
  if (out_of_memory_) throw std::bad_alloc();
  const std::uint64_t missing = appended_events_ - written_events_ + refused_events_;
  throw IoError(failure_ +
                (missing == 0 ? "" : "; " + std::to_string(missing) + " events are not in the file"));
}

}  // namespace sweep::tbwriter
