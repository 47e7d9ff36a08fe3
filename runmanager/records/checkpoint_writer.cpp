#include "runmanager/records/checkpoint_writer.h"

#include <utility>

#include "core/base/block_signals.h"

namespace sweep {

CheckpointWriter::CheckpointWriter(std::filesystem::path path, const Network& network,
                                   std::function<void()> flush_events)
    : path_(std::move(path)), network_(network), flush_events_(std::move(flush_events)) {}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::start(TrainingState state, const RunRecord& record, const RunPosition& position,
                             bool is_only) {
  state_ = std::move(state);
  update(metadata_, record, position);
  if (is_only) {
    write();
    return;
  }
  if (!thread_.joinable()) {
    const BlockSignals block;
    thread_ = std::thread([this] { loop(); });
  }
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  wake_.notify_one();
}

bool CheckpointWriter::is_ready() const {
  const std::lock_guard lock(mutex_);
  return !busy_;
}

void CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return !busy_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CheckpointWriter::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return busy_ || closing_; });
    if (!busy_) return;
    lock.unlock();
    write();
    lock.lock();
    busy_ = false;
    done_.notify_one();
  }
}

void CheckpointWriter::write() {
  try {
    // A checkpoint whose events are not in their file cannot be resumed from, so they come first.
    flush_events_();
    write_checkpoint(path_, network_, state_, metadata_, Survives::kKill);
  } catch (...) {
    error_ = std::current_exception();
  }
}

}  // namespace sweep
