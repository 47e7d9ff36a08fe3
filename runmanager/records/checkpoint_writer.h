// Writes a run's checkpoints while the run goes on, so that training does not wait for files.
#pragma once

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "core/network/network.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/results.h"

namespace sweep {

/// One checkpoint at a time, written by a thread of its own. Used by one thread.
class CheckpointWriter {
 public:
  /// Replaces `path` each time. `flush_events` brings the run's events to their file, without which a
  /// checkpoint is of no use; it is called from the writer's thread. `network` must outlive this.
  CheckpointWriter(std::filesystem::path path, const Network& network, std::function<void()> flush_events);
  /// Waits for what was started; its error is lost.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Begins to write a checkpoint of what the arguments are now. The one before must have been finished.
  /// Nothing is gained from a thread for a run's only one, `is_only`: that is written at once, and finish()
  /// says how that went.
  void start(TrainingState state, const RunRecord& record, const RunPosition& position, bool is_only);

  /// Whether finish() would return at once.
  bool is_ready() const;

  /// Returns when the checkpoint is in its file. Throws what kept it from that: IoError, std::bad_alloc.
  void finish();

 private:
  void loop();
  void write();

  const std::filesystem::path path_;
  const Network& network_;
  const std::function<void()> flush_events_;

  // Of the thread while it is busy, else of the caller.
  TrainingState state_;
  CheckpointTexts texts_;
  std::exception_ptr error_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool busy_ = false, closing_ = false;
  std::thread thread_;
};

}  // namespace sweep
