// Threads that live as long as an engine, and run the parts of one task at a time.
//
// Each thread has a range of the parts, the same in every task of that size, so that it usually finds in its
// cache what it wrote in the step before. A thread that has finished its range goes on with parts that others
// have not begun. On a quiet machine that is rare. When other processes use the cores, it is what keeps the
// pool fast: a thread that is not running, because it is still waking up or was preempted, holds up the task
// by at most the one part that it has begun.
//
// run() publishes a task in this order: the task itself, the number of unfinished parts, the unclaimed parts
// of every range, the generation. A thread claims a part by decrementing its range's `unclaimed`, and reads
// task_ only after that. A task cannot end while a claimed part is unfinished, so the task that a thread
// reads is the one that its part belongs to. That holds for late threads, which look for parts of a task that
// is over, and for early ones, which find parts before they see the new generation. The caller works like the
// others and returns when no part is unfinished.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace sweep::cpu {

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

/// Not thread-safe: one thread owns the pool and calls run(). Denormal floats, those below 1.2e-38, are
/// flushed to zero inside of run().
class ThreadPool {
 public:
  /// `threads` >= 1, the caller included: a pool of 1 starts no thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return threads_.size(); }

  /// Calls work(part, thread) once for every part in [0, parts), parts < 2^32, and returns when all calls
  /// have returned. Thread 0 is the caller. Thread t begins with the t-th of size() nearly equal ranges of
  /// parts, but any thread may run any part, in any order, so results must depend on the part alone. Calls at
  /// the same time have different threads. A single part runs on the caller. `work` must be noexcept.
  /// Allocates nothing.
  template <class Work>
  void run(std::size_t parts, Work&& work) {
    static_assert(std::is_nothrow_invocable_v<Work&, std::size_t, std::size_t>, "work must be noexcept");
    Task task{[](void* context, std::size_t part, std::size_t thread) noexcept {
                (*static_cast<std::remove_reference_t<Work>*>(context))(part, thread);
              },
              const_cast<void*>(static_cast<const void*>(&work)), parts};
    run_task(task);
  }

 private:
  struct Task {
    void (*call)(void* context, std::size_t part, std::size_t thread) noexcept;
    void* context;
    std::size_t parts;
  };

  // A cache line each. A thread's range is the part_begin() range of its index.
  struct alignas(64) PerThread {
    std::atomic<std::uint32_t> unclaimed{0};  // parts at the end of its range that no thread has begun
    SpinLimit spin_limit;                     // used by this thread only
  };

  void run_task(const Task& task);
  void join();
  std::uint32_t run_parts(std::size_t thread);
  void work(std::size_t thread);

  const Task* task_ = nullptr;
  std::vector<PerThread> threads_;  // [size()]
  WaitableCounter generation_;      // one more per task, and once more to stop
  WaitableCounter unfinished_;      // parts of the current task
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace sweep::cpu
