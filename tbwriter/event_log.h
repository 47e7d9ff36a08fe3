// The event file of a SummaryWriter: any thread appends, one background thread writes. Not part of the
// installed interface.
//
// append() encodes into queue_ under mutex_. The thread swaps the queue for an empty one, writes it without
// the lock, and publishes its progress in written_. Progress is counted in bytes of the file: flush()
// remembers appended_ and waits until written_ has reached it.
//
// queue_bytes limits what is queued; append() waits for room as long as the disk makes progress. A write()
// that blocks forever (a dead network file system) cannot be interrupted. After `write_timeout` without
// progress the log fails, callers return, and close() detaches the thread, which shares ownership of the log
// for that reason.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/file.h"
#include "tbwriter/error.h"
#include "tbwriter/event_files.h"
#include "tbwriter/writer_options.h"

namespace sweep::tbwriter {

/// Queues whole records and writes them in a background thread. The first failure is kept and stops all
/// writing; a disk that accepts nothing for options.write_timeout is also a failure. Thread-safe.
class EventLog {
 public:
  using Write = std::function<ssize_t(int, const void*, std::size_t)>;

  /// Creates and locks the directory, creates a file with `first_records` in it, and starts the thread. `now`
  /// is in seconds since 1970, for the file's name. `write` replaces write(2) in tests. Throws IoError.
  static std::shared_ptr<EventLog> open(const std::filesystem::path& directory, const WriterOptions& options,
                                        double now, std::string_view first_records, Write write = {});
  ~EventLog() {
    if (thread_.joinable()) thread_.detach();  // in a forked child
  }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Calls encode(buffer) with the queue locked, which appends whole records to `buffer`. After a failure the
  /// records are dropped. Throws UsageError after close(). If encode throws, the exception passes through and
  /// what it appended is removed.
  template <class Encode>
  void append(Encode&& encode) {
    std::unique_lock lock = lock_queue();
    if (!lock) return;
    // It may begin to close while this waits: nothing writes what is appended once its thread has ended.
    const bool has_room = closing_ || appended_ - written_ < options_.queue_bytes || wait_for_room(lock);
    require(!closing_, path_.native(), ": the writer is closed; nothing can be added any more");
    if (failed_ || !has_room) {
      ++refused_events_;
      return;
    }
    const std::size_t before = queue_.size();
    try {
      encode(queue_);
    } catch (...) {
      queue_.resize(before);  // It may be half a record, and is not counted yet.
      throw;
    }
    appended_ += queue_.size() - before;
    ++appended_events_;
    if (queue_.size() >= options_.flush_bytes) wake_.notify_one();
  }

  /// Calls work() with the queue locked, for state that is guarded by the same lock.
  template <class Work>
  void locked(Work&& work) {
    if (const std::unique_lock lock = lock_queue()) work();
  }

  /// Waits until everything that was appended is written, and synced to disk if `sync`. Throws
  /// the first failure as IoError that tells how many events are not in the file, or
  /// std::bad_alloc if the thread ran out of memory; IoError also in a forked child.
  void flush(bool sync);

  /// Writes the rest, stops the thread, closes the file and unlocks the directory. Throws the first failure;
  /// further calls do nothing. Not to be called in a forked child.
  void close();

  /// Whether this process is a forked child of the one that opened the log: it has no thread that writes.
  bool is_forked() const { return ::getpid() != process_; }

  const std::filesystem::path& path() const { return path_; }

  /// The end of the file once everything that was appended is written.
  FilePosition end() const;

 private:
  EventLog(const std::filesystem::path& directory, const WriterOptions& options, double now, Write write);

  /// Locks the queue. Not if another thread of the parent had the lock when this child was forked: nobody
  /// would unlock it.
  std::unique_lock<std::mutex> lock_queue() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock && !is_forked()) lock.lock();
    return lock;
  }
  /// Waits for done() as long as the disk makes progress; otherwise fails. Returns false after a failure.
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, Done done);
  bool wait_for_room(std::unique_lock<std::mutex>& lock);
  void run();
  void write_all();
  void write_records(std::string_view bytes, std::uint64_t last_event);
  void sync_file(int file);
  void fail(const std::string& message);
  [[noreturn]] void throw_failure() const;

  const WriterOptions options_;
  const Write write_;
  const ::pid_t process_ = ::getpid();  // that has the thread
  FileDescriptor lock_;                 // of the directory
  const std::filesystem::path path_;
  FileDescriptor file_;  // used by the thread alone while it runs

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // wakes the thread: there is work
  std::condition_variable done_;  // wakes callers: progress or failure
  std::string queue_;
  std::uint64_t appended_ = 0, written_ = 0, synced_ = 0;                        // bytes of the file
  std::uint64_t appended_events_ = 0, written_events_ = 0, refused_events_ = 0;  // calls of append()
  bool flush_wanted_ = false, sync_wanted_ = false, closing_ = false, closed_ = false, failed_ = false,
       removed_ = false;
  bool thread_done_ = false, stalled_ = false, out_of_memory_ = false;  // stalled_: write_timeout has passed
  std::string failure_;
  std::thread thread_;
};

}  // namespace sweep::tbwriter
