// Writes a run's checkpoints in a thread, so that training does not wait for files.
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

/// Writes one checkpoint at a time. The trainer hands a copy of the state to the thread with start() and
/// collects the result with finish(). Between the two, the thread owns the state; otherwise the caller does.
/// Methods are called by one thread.
class CheckpointWriter {
 public:
  /// Every checkpoint replaces `path`. `flush_events` writes the run's events to their file; the writer's
  /// thread calls it before each checkpoint, which says how far the events reach. `network` must outlive the
  /// writer.
  CheckpointWriter(std::filesystem::path path, const Network& network, std::function<void()> flush_events);
  /// Waits for a checkpoint that was started. Its error is lost.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Starts to write a checkpoint of the arguments' current values. finish() must have returned for the one
  /// before. `is_only`: the run has no other checkpoint, so there is no training to overlap with, and it is
  /// written at once without a thread; finish() reports its error all the same.
  void start(TrainingState state, const RunRecord& record, const RunPosition& position, bool is_only);

  /// Whether finish() would return at once.
  bool is_ready() const;

  /// Returns when the checkpoint is in its file. Throws the writer's error: IoError or std::bad_alloc.
  void finish();

 private:
  void loop();
  void write();

  const std::filesystem::path path_;
  const Network& network_;
  const std::function<void()> flush_events_;

  // Used by the thread while busy_, else by the caller. busy_ changes under mutex_, which orders the
  // accesses.
  TrainingState state_;
  CheckpointMetadata metadata_;
  std::exception_ptr error_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool busy_ = false, closing_ = false;
  std::thread thread_;
};

}  // namespace sweep
