// Makes numbered items ahead of their use in background threads, and hands them out in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace sweep {

/// One thread calls the methods; `make` runs in the workers, for different slots at once. An item is made
/// once, in whichever worker is free, so results must depend on its number alone.
class Prefetcher {
 public:
  /// Makes item `item` in the place numbered `slot`, in [0, slots). What it throws reaches next().
  using Make = std::function<void(std::size_t item, std::size_t slot)>;

  /// `threads` >= 1; at most slots − 1 items are made ahead of the one in use. `slots` >= 2.
  /// Throws std::system_error if a thread cannot be started.
  Prefetcher(std::size_t threads, std::size_t slots, Make make);

  /// Waits for the items being made, and drops the others.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Lets no further item start, and returns when none is being made: what `make` reads may be changed then.
  void stop();

  /// Starts over with items 0 … count − 1. Calls stop() first.
  void start(std::size_t count);

  /// Returns the slot of the next item, waiting for it, or nothing after the last; the slot returned before
  /// may be overwritten then. Throws what `make` threw for that item, and after that returns nothing.
  std::optional<std::size_t> next();

 private:
  enum class State { kEmpty, kReady, kFailed };
  struct Slot {
    State state = State::kEmpty;
    std::exception_ptr error;
  };

  void work();
  void join();
  std::size_t slot_of(std::size_t item) const { return item % slots_.size(); }

  const Make make_;
  std::mutex mutex_;
  std::condition_variable may_make_;  // an item may be started, or the end has come
  std::condition_variable made_;      // an item was finished
  std::vector<Slot> slots_;
  std::size_t count_ = 0;       // items of this round; 0 while stopped
  std::size_t started_ = 0;     // items that workers have taken
  std::size_t handed_out_ = 0;  // items that next() has returned
  std::size_t released_ = 0;    // items that are no longer in use: handed_out_, or one less
  std::size_t busy_ = 0;        // items being made now
  bool ending_ = false;
  std::vector<std::thread> threads_;  // last: it uses everything above
};

}  // namespace sweep
