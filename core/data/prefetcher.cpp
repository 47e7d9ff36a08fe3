#include "core/data/prefetcher.h"

#include <utility>

#include "core/base/threads.h"

namespace sweep {

Prefetcher::Prefetcher(std::size_t threads, std::size_t slots, Make make)
    : make_(std::move(make)), slots_(slots) {
  const BlockSignals block;
  try {
    for (std::size_t i = 0; i < threads; ++i)
      threads_.push_back(start_thread("prepares batches", [this] { work(); }));
  } catch (...) {
    join();  // A running thread must not outlive the members it uses.
    throw;
  }
}

Prefetcher::~Prefetcher() { join(); }

void Prefetcher::join() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  may_make_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Prefetcher::stop() {
  std::unique_lock lock(mutex_);
  count_ = 0;
  wait_until(made_, lock, [this] { return busy_ == 0; });
}

void Prefetcher::start(std::size_t count) {
  stop();
  {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) slot = Slot{};
    started_ = handed_out_ = released_ = 0;
    count_ = count;
    failure_ = nullptr;
  }
  may_make_.notify_all();
}

std::optional<std::size_t> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (handed_out_ >= count_) return std::nullopt;
  if (released_ < handed_out_) {
    slots_[slot_of(released_)].state = State::kEmpty;
    ++released_;
    may_make_.notify_one();
  }
  Slot& slot = slots_[slot_of(handed_out_)];
  wait_until(made_, lock, [&] { return slot.state != State::kEmpty; });
  if (slot.state == State::kFailed) {
    failure_ = slot.error;
    lock.unlock();  // stop() locks, and waits for the workers
    stop();
    std::rethrow_exception(failure_);
  }
  return slot_of(handed_out_++);
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wait_until(may_make_, lock,
               [this] { return ending_ || (started_ < count_ && started_ < released_ + slots_.size()); });
    if (ending_) return;
    const std::size_t item = started_++;
    Slot& slot = slots_[slot_of(item)];
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      make_(item, slot_of(item));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --busy_;
    slot.state = error ? State::kFailed : State::kReady;
    slot.error = std::move(error);
    made_.notify_one();  // only the thread that calls next() or stop() waits for it
  }
}

}  // namespace sweep
