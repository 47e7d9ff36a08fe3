#include "tbwriter/event_log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "tbwriter/record.h"

namespace sweep::tbwriter {
namespace {

std::string reason(int error) { return std::strerror(error); }

// Returns an error number, and how many bytes are written in any case.
std::pair<int, std::size_t> write_all(int fd, std::string_view bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + written, bytes.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {errno, written};
    written += static_cast<std::size_t>(n);
  }
  return {0, written};
}

std::size_t whole_records(std::string_view bytes, std::size_t limit) {
  std::size_t end = 0;
  while (end < limit) {
    const RecordView record = read_record(bytes.substr(end));
    if (record.size == 0 || end + record.size > limit) break;
    end += record.size;
  }
  return end;
}

}  // namespace

EventLog::EventLog(const std::filesystem::path& directory, const EventLogOptions& options, double now,
                   std::string_view first_records, std::function<std::string()> file_header)
    : directory_(directory), options_(options), file_header_(std::move(file_header)) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) throw IoError(directory_.string() + ": cannot create the run's directory: " + error.message());
  lock_ = lock_directory(directory_);
  session_ = next_session(list_event_files(directory_), now);
  queue_.emplace_back();
  file_bytes_ = first_records.size();
  Segment first{0, std::string(first_records)};
  open_file(0);
  write_segment(first);  // At once: a file without its first record would hide the run.
  if (failed_) throw_failure();
  // Signals are the program's business, and SIGXFSZ would end it where write() can say what is wrong.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw IoError(path_.string() + ": cannot start the thread that writes it");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

EventLog::~EventLog() {
  try {
    close();
  } catch (const Error&) {
    // The owner reports errors through close(); whoever skips it has chosen not to know.
  }
}

bool EventLog::wait_for_room(std::unique_lock<std::mutex>& lock) {
  flush_wanted_ = true;  // The queue may be smaller than what the thread waits for.
  wake_.notify_one();
  const bool room = done_.wait_for(lock, options_.longest_wait,
                                   [this] { return failed_ || pending_ < options_.queue_bytes; });
  if (!room) {
    fail(path_.string() + ": the disk has taken nothing for " +
         std::to_string(options_.longest_wait.count()) + " ms while " + std::to_string(pending_) +
         " bytes wait for it; later events are lost");
  }
  return !failed_;
}

void EventLog::begin_file() {
  const unsigned next = queue_.back().file + 1;
  std::string header = file_header_();
  file_bytes_ = header.size();
  appended_ += header.size();
  pending_ += header.size();
  queue_.push_back({next, std::move(header)});
}

void EventLog::flush(bool sync) {
  std::unique_lock lock(mutex_);
  if (!closed_) {
    const std::uint64_t target = appended_;
    flush_wanted_ = true;
    sync_wanted_ |= sync;
    wake_.notify_one();
    done_.wait(lock, [&] { return failed_ || (written_ >= target && (!sync || synced_ >= target)); });
  }
  if (failed_) throw_failure();
}

void EventLog::close() {
  {
    std::unique_lock lock(mutex_);
    if (closed_) return;
    closing_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  closed_ = true;
  if (file_.get() >= 0) {
    // Network file systems report a full disk only here.
    if (::close(file_.release()) != 0) fail(path_.string() + ": cannot close: " + reason(errno));
  }
  lock_.reset();
  if (failed_) throw_failure();
}

std::filesystem::path EventLog::path() const {
  std::unique_lock lock(mutex_);
  return path_;
}

std::uint64_t EventLog::written_bytes() const {
  std::unique_lock lock(mutex_);
  return path_bytes_;
}

void EventLog::run() {
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
    std::size_t bytes = 0;
    for (const Segment& segment : taken) {
      write_segment(segment);
      bytes += segment.bytes.size();
    }
    if (sync) sync_file();
    lock.lock();
    written_ += bytes;
    pending_ -= bytes;
    if (sync) synced_ = written_;
    spare_ = std::move(taken.back().bytes);
    spare_.clear();
    done_.notify_all();
    if (closing_ && pending_ == 0 && !sync_wanted_) return;
  }
}

void EventLog::write_segment(const Segment& segment) {
  if (segment.file != file_number_) {
    sync_file();  // sync() promises all files, and knows only the newest.
    open_file(segment.file);
  }
  {
    std::unique_lock lock(mutex_);
    if (failed_ || segment.bytes.empty()) return;
  }
  const auto [error, written] = write_all(file_.get(), segment.bytes);
  struct ::stat status {};
  const bool removed = ::fstat(file_.get(), &status) == 0 && status.st_nlink == 0;
  std::unique_lock lock(mutex_);
  path_bytes_ += error == 0 ? written : whole_records(segment.bytes, written);
  if (error != 0) {
    // No half record stays behind, so that a reader sees an intact file that ends early.
    [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(path_bytes_));
    fail(path_.string() + ": cannot write: " + reason(error) + "; the file is whole up to byte " +
         std::to_string(path_bytes_));
  } else if (removed) {
    fail(path_.string() + ": the file was removed while it was being written; its events are lost");
  }
}

void EventLog::sync_file() {
  if (::fdatasync(file_.get()) == 0) return;
  const int error = errno;
  std::unique_lock lock(mutex_);
  fail(path_.string() + ": cannot sync: " + reason(error));
}

void EventLog::open_file(unsigned number) {
  const std::filesystem::path path = directory_ / event_file_name(session_, number);
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
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

void EventLog::throw_failure() const { throw IoError(failure_); }

}  // namespace sweep::tbwriter
