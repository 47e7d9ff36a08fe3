#include "core/data/prefetcher.h"

#include <utility>

#include "core/base/threads.h"

namespace sweep {

Prefetcher::Prefetcher(std::size_t threads, std::size_t slots, std::size_t count, Make make)
    : make_(std::move(make)), slots_(slots), count_(count) {
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
    count_ = 0;
  }
  may_make_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<std::size_t> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (handed_out_ >= count_) return std::nullopt;
  if (released_ < handed_out_) {
    slots_[slot_of(released_++)].is_made = false;
    may_make_.notify_one();
  }
  const Slot& slot = slots_[slot_of(handed_out_)];
  wait_until(made_, lock, [&] { return slot.is_made; });
  if (slot.error) std::rethrow_exception(slot.error);
  return slot_of(handed_out_++);
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wait_until(may_make_, lock,
               [this] { return started_ >= count_ || started_ < released_ + slots_.size(); });
    if (started_ >= count_) return;
    const std::size_t item = started_++;
    Slot& slot = slots_[slot_of(item)];
    lock.unlock();
    std::exception_ptr error;
    try {
      make_(item, slot_of(item));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    slot = {true, std::move(error)};
    made_.notify_one();  // only the thread that calls next() waits for it
  }
}

}  // namespace sweep
