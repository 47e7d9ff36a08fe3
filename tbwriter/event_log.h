// The event files of a run: any thread appends, one background thread writes. Not
// part of the installed interface.
//
// append() encodes into the last segment of queue_ under mutex_. The thread swaps the whole queue
// for an empty one, writes the segments without the lock, and publishes its progress in written_.
// There is one segment per file, so that a file change keeps its place in the order. Progress is
// counted in bytes since the start of the session, over all files: flush() remembers appended_ and
// waits until written_ has reached it.
//
// pending_ limits the queue; append() waits for room as long as the disk makes progress. A write()
// that blocks forever (a dead network file system) cannot be interrupted. After `longest_wait`
// without progress the log fails, callers return, and close() detaches the thread, which shares
// ownership of the log for that reason.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tbwriter/directory_lock.h"
#include "tbwriter/error.h"
#include "tbwriter/event_file_name.h"
#include "tbwriter/resume.h"

namespace sweep::tbwriter {

/// See WriterOptions.
struct EventLogOptions {
  std::chrono::milliseconds flush_interval{1000};
  std::size_t flush_bytes = 0;
  std::size_t queue_bytes = 0;
  std::chrono::milliseconds longest_wait{0};
  std::uint64_t max_file_bytes = 0;  // 0: one file
  bool locks_directory = true;
  /// Replaces write(2) in tests; empty: write(2).
  std::function<ssize_t(int, const void*, std::size_t)> write = {};
};

/// Queues whole records and writes them in a background thread. The first failure is kept and stops all
/// writing; a disk that accepts nothing for `longest_wait` is a failure, too. Thread-safe.
class EventLog {
 public:
  /// Creates and locks the directory, creates the session's first file with `first_records` in it, and starts
  /// the thread. `now` is in seconds since 1970, for the file's name. `file_header` returns the records that
  /// every later file of the session begins with; it is called with the queue locked. Throws IoError.
  static std::shared_ptr<EventLog> open(const std::filesystem::path& directory,
                                        const EventLogOptions& options, double now,
                                        std::string_view first_records,
                                        std::function<std::string()> file_header);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Calls encode(buffer, file) with the queue locked, which appends whole records to `buffer`;
  /// `file` is the number of the session's file that will contain them. After a failure the records
  /// are dropped. Throws UsageError after close(). If encode throws, the exception passes through
  /// and what it appended is removed.
  template <class Encode>
  void append(Encode&& encode) {
    std::unique_lock lock(mutex_);
    if (closing_) throw UsageError(path_.string() + ": the writer is closed; nothing can be added any more");
    if (failed_ || (pending_ >= options_.queue_bytes && !wait_for_room(lock))) {
      ++refused_events_;
      return;
    }
    if (options_.max_file_bytes != 0 && file_bytes_ >= options_.max_file_bytes) begin_file();
    std::string& buffer = queue_.back().bytes;
    const std::size_t before = buffer.size();
    try {
      encode(buffer, queue_.back().file);
    } catch (...) {
      buffer.resize(before);  // It may be half a record, and is not counted yet.
      throw;
    }
    const std::size_t added = buffer.size() - before;
    appended_ += added;
    pending_ += added;
    file_bytes_ += added;
    if (added != 0) {
      ++queue_.back().events;
      ++appended_events_;
    }
    if (pending_ >= options_.flush_bytes) wake_.notify_one();
  }

  /// Calls work() with the queue locked, for state that is guarded by the same lock.
  template <class Work>
  void locked(Work&& work) {
    std::unique_lock lock(mutex_);
    work();
  }

  /// Waits until everything that was appended is written, and synced to disk if `sync`. Throws
  /// the first failure as IoError that tells how many events are not in the file, or
  /// std::bad_alloc if the thread ran out of memory.
  void flush(bool sync);

  /// Writes the rest, stops the thread, closes the file and unlocks the directory. Throws the first failure;
  /// further calls do nothing.
  void close();

  std::filesystem::path path() const;

  /// The end of the newest file once everything that was appended is written.
  FilePosition end() const;

 private:
  struct Segment {
    unsigned file = 0;
    std::string bytes;
    std::uint64_t events = 0;  // calls of append() in bytes
  };

  EventLog(const std::filesystem::path& directory, const EventLogOptions& options,
           std::function<std::string()> file_header);

  /// Waits for done() as long as the disk makes progress; otherwise fails. Returns false after a failure.
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, Done done);
  bool wait_for_room(std::unique_lock<std::mutex>& lock);
  void begin_file();
  void run();
  void write_all();
  void write_segment(const Segment& segment);
  void count_written(std::size_t bytes);
  void end_segment(const Segment& segment, std::size_t done, std::size_t last, int error);
  void sync_file();
  void open_file(unsigned number);
  void fail(const std::string& message);
  [[noreturn]] void throw_failure() const;

  const std::filesystem::path directory_;
  const EventLogOptions options_;
  const std::function<std::string()> file_header_;
  Descriptor lock_;  // of the directory
  SessionName session_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // wakes the thread: there is work
  std::condition_variable done_;  // wakes callers: progress or failure
  std::deque<Segment> queue_;     // never empty; the last segment is of the newest file
  std::string spare_;             // an empty buffer whose capacity is reused
  std::size_t pending_ = 0;       // bytes appended and not written yet
  // Bytes since the start of the session, over all files.
  std::uint64_t appended_ = 0, written_ = 0, synced_ = 0;
  std::uint64_t appended_events_ = 0, written_events_ = 0, refused_events_ = 0;
  std::uint64_t file_bytes_ = 0;  // bytes appended to the newest file
  bool flush_wanted_ = false, sync_wanted_ = false, closing_ = false, closed_ = false, failed_ = false;
  bool thread_done_ = false, stalled_ = false, out_of_memory_ = false;  // stalled_: longest_wait has passed
  std::string failure_;
  std::filesystem::path path_;    // of the file that is being written
  std::uint64_t path_bytes_ = 0;  // bytes of whole records in it

  // Used by the thread alone while it runs.
  Descriptor file_;
  unsigned file_number_ = 0;
  std::thread thread_;
};

}  // namespace sweep::tbwriter
