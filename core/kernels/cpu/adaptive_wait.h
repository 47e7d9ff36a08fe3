// Waiting for another thread: spin for as long as that pays off, then sleep.
//
// A step of a small network takes a few hundred microseconds and has several tasks, so what a thread waits
// for is usually near, and waking up from a futex would take about as long. On a contended machine the
// opposite holds: the other thread may not be running at all, and spinning uses up CPU time that the
// scheduler then takes away from the parts that come next. So a thread stops spinning when it notices
// contention: when it was preempted while it spun, or ran long after it was woken up.
//
// Nothing here calls sched_yield(). Linux (EEVDF) pushes the deadline of the calling thread back by a time
// slice at each call, so a thread that yields in a loop gets hardly any CPU time next to a busy loop.
// std::atomic::wait() is out for the same reason: libstdc++ yields four times before it sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sweep::cpu {

/// How long one thread spins before it sleeps. Not thread-safe: every thread that waits has its own.
class SpinLimit {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  /// A block of 16 images of a small CNN takes about 150 µs, and with batches of 100 (7 blocks), one of two
  /// threads waits for about one block at the end of each step.
  static constexpr Duration kMax = std::chrono::microseconds(300);

  Duration get() const { return limit_; }

  /// To be called after each wait. Contention sets the limit to zero; each wait without it raises the limit a
  /// little. On a quiet machine it is at or near kMax.
  void update(bool contended);

 private:
  Duration limit_ = kMax;
};

/// A counter whose changes threads can wait for. Thread-safe.
class WaitableCounter {
 public:
  /// Acquires what was written before the add() that it sees.
  std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  /// Relaxed, and wakes nobody: for a value that is set before others may look at it.
  void store(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }
  /// Adds modulo 2^32 and returns the new value. Wakes nobody.
  std::uint32_t add(std::uint32_t difference) { return value_.fetch_add(difference) + difference; }
  /// Wakes threads that sleep in wait_while_equal(), after add(). Cheap if there are none.
  void wake_all();
  /// Returns when the value is not `old`. A thread that sleeps notices only when wake_all() is called.
  void wait_while_equal(std::uint32_t old, SpinLimit& limit);

 private:
  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};  // threads that sleep or are about to; increased under mutex_
  std::mutex mutex_;
  // The first wake_all() since sleepers_ was zero: what counts for a thread that is still not running when
  // the value changes again. Zero: none yet. Guarded by mutex_.
  SpinLimit::Clock::time_point first_wake_;
  std::condition_variable changed_;
};

}  // namespace sweep::cpu
