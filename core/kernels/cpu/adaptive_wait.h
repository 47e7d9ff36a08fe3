// Waiting for another thread: spinning for as long as that has been paying off, then sleeping.
//
// A step of a small network takes a few hundred microseconds and consists of several tasks, so what a thread
// waits for is usually near, and to be woken up costs as much again. On a machine that others use, too, the
// opposite holds: the thread that is waited for may not be running at all, and spinning takes the core away
// from it, or uses up the time that the scheduler will not give a second time. Each thread therefore has a
// budget for spinning: it grows while waits are short, shrinks when a spin was in vain, and is gone when the
// thread was preempted while it span.
//
// There is no sched_yield(): under contention it gives away the rest of the thread's share (Linux 6.18 moves
// the thread back by a whole slice at each call). That rules out std::atomic::wait(), too, which yields a few
// times in libstdc++.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sweep::cpu {

/// How long a thread spins before it sleeps. Not thread-safe: each waiting thread has its own.
class SpinBudget {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  Duration time() const { return time_; }
  /// To be called after a wait of `waited` in all, with the longest time between two looks at the clock while
  /// spinning.
  void update(Duration waited, Duration longest_gap);

 private:
  Duration time_ = kLongest;

 public:
  static constexpr Duration kLongest = std::chrono::microseconds(120);
};

/// A counter that threads can wait on. Thread-safe.
class WaitableCounter {
 public:
  std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  /// Without waking anybody.
  void store(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }
  /// Returns the new value.
  std::uint32_t add(std::uint32_t difference) { return value_.fetch_add(difference) + difference; }
  /// Wakes the threads that sleep in wait_while_equal(). To be called after add().
  void wake_all();
  void wait_while_equal(std::uint32_t old, SpinBudget& budget);

 private:
  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace sweep::cpu
