// A run's event files, appended to by any thread and written by one. Not part of the installed interface.
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

struct EventLogOptions {
  std::chrono::milliseconds flush_interval{1000};
  std::size_t flush_bytes = 0;
  std::size_t queue_bytes = 0;
  std::chrono::milliseconds longest_wait{0};
  std::uint64_t max_file_bytes = 0;  // 0: one file
  /// write(2); tests pass one that is slow.
  std::function<ssize_t(int, const void*, std::size_t)> write = {};
};

/// Queues whole records and writes them from a thread of its own. The first failure stays and stops all
/// writing. Nobody waits for a disk that takes nothing for `longest_wait`: that is a failure, too, and the
/// thread, which cannot be called back from the system, is left to itself; so it owns the log together with
/// whoever opened it.
class EventLog {
 public:
  /// Locks the directory and creates the session's first file with `first_records` in it, then starts the
  /// thread. `file_header` makes the records that every later file of the session begins with. Throws
  /// IoError.
  static std::shared_ptr<EventLog> open(const std::filesystem::path& directory,
                                        const EventLogOptions& options, double now,
                                        std::string_view first_records,
                                        std::function<std::string()> file_header);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  /// Calls encode(buffer, generation) with the queue locked; what it appends must be whole records.
  /// `generation` is the number of the session's file that they will be in. Does nothing after a failure, and
  /// throws UsageError after close(). What encode throws passes through, and what it had appended is dropped.
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
      buffer.resize(before);  // Half a record, and bytes that nobody has counted.
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

  /// Calls work() with the queue locked.
  template <class Work>
  void locked(Work&& work) {
    std::unique_lock lock(mutex_);
    work();
  }

  /// Waits until all that was appended is written; syncs it too, if asked. Throws the first failure, as
  /// IoError that says how many events are not in the file; std::bad_alloc if the thread had no memory.
  void flush(bool sync);

  /// flush(), stop the thread, close the file, release the directory. Throws the first failure, once.
  void close();

  std::filesystem::path path() const;

  /// Where the newest file ends once all that was appended is written.
  FilePosition end() const;

 private:
  struct Segment {
    unsigned file = 0;
    std::string bytes;
    std::uint64_t events = 0;  // calls of append() in bytes
  };

  EventLog(const std::filesystem::path& directory, const EventLogOptions& options,
           std::function<std::string()> file_header);

  /// Waits for done() as long as the disk takes something. False and a failure if it does not.
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
  Descriptor lock_;
  SessionName session_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // for the thread: there is something to do
  std::condition_variable done_;  // for callers: something was written, or failed
  std::deque<Segment> queue_;     // never empty; one segment per file
  std::string spare_;             // an empty buffer with capacity, to be used next
  std::size_t pending_ = 0;       // bytes appended and not yet written
  std::uint64_t appended_ = 0, written_ = 0, synced_ = 0;
  std::uint64_t appended_events_ = 0, written_events_ = 0, refused_events_ = 0;
  std::uint64_t file_bytes_ = 0;  // appended to the newest file
  bool flush_wanted_ = false, sync_wanted_ = false, closing_ = false, closed_ = false, failed_ = false;
  bool thread_done_ = false, stalled_ = false, out_of_memory_ = false;
  std::string failure_;
  std::filesystem::path path_;
  std::uint64_t path_bytes_ = 0;  // written to path_

  Descriptor file_;  // of the thread, once it runs
  unsigned file_number_ = 0;
  std::thread thread_;
};

}  // namespace sweep::tbwriter
