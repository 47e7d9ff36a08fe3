#include "runmanager/checkpoint_writer.h"

#include <signal.h>

#include <utility>

namespace sweep {

CheckpointWriter::CheckpointWriter(std::filesystem::path path, const Network& network,
                                   std::function<void()> flush_events)
    : path_(std::move(path)), network_(network), flush_events_(std::move(flush_events)) {}

void CheckpointWriter::start_thread() {
  // Signals are for the thread that trains; a file that may not grow is to be an error and no end.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

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
  update(texts_, record, position);
  if (is_only) {
    write();
    return;
  }
  if (!thread_.joinable()) start_thread();
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
    flush_events_();
    write_checkpoint(path_, network_, state_, texts_, Survives::kKill);
  } catch (...) {
    error_ = std::current_exception();
  }
}

}  // namespace sweep
