// Runs numbered jobs ahead of their use in background threads, and returns their results in order.
//
// Slots form a ring: item i is made in slot i mod slots. Items are claimed in order (started_), may finish in
// any order, and are returned in order (handed_out_). A worker may claim item i only once the item that used
// its slot before, i − slots, has been released by next(). All counters and slot states are guarded by
// mutex_; make() runs without the lock, on a slot that no other thread touches until it is marked ready.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/threads.h"

namespace sweep {

/// One thread calls the methods; `make` runs in the workers, concurrently for different slots. Each item is
/// made once, by whichever worker is free, so the result must depend only on its number.
class Prefetcher {
 public:
  /// Makes item `item` in slot `slot`, in [0, slots). next() rethrows its exceptions.
  using Make = std::function<void(std::size_t item, std::size_t slot)>;

  /// Makes items 0 … count − 1 in `threads` >= 1 threads. `slots` >= 2: at most slots − 1 items are made
  /// ahead of the one in use. Throws Error if a thread cannot be started.
  Prefetcher(std::size_t threads, std::size_t slots, std::size_t count, Make make)
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

  /// Waits for the items being made; the others are not made.
  ~Prefetcher() { join(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next item and returns its slot, or nothing after the last item. Releases the slot returned
  /// by the previous call. If `make` threw for this item, rethrows the exception, as do later calls.
  std::optional<std::size_t> next() {
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

 private:
  struct Slot {
    bool is_made = false;
    std::exception_ptr error;  // that make() has thrown
  };

  void work() {
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
  void join() {
    {
      const std::lock_guard lock(mutex_);
      count_ = 0;
    }
    may_make_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  std::size_t slot_of(std::size_t item) const { return item % slots_.size(); }

  const Make make_;
  std::mutex mutex_;
  std::condition_variable may_make_;  // a worker may claim an item, or must exit
  std::condition_variable made_;      // an item was finished
  std::vector<Slot> slots_;
  std::size_t count_;                 // of items; 0: no more are made
  std::size_t started_ = 0;           // items that workers have claimed
  std::size_t handed_out_ = 0;        // items that next() has returned
  std::size_t released_ = 0;          // items whose slots are free again: handed_out_, or one less
  std::vector<std::thread> threads_;  // last: the threads use the members above
};

}  // namespace sweep
