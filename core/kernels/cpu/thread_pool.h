// Threads that live as long as an engine, with a static schedule.
//
// One call of run() is one task; the caller works on it, too. A new task is published by increasing
// generation_, which idle workers wait for; the caller then waits until unfinished_ is zero. Both waits spin
// first and sleep on the atomic (a futex on Linux) later: see thread_pool.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/kernels/cpu/adaptive_wait.h"

namespace sweep::cpu {

/// Not thread-safe: one thread owns the pool and calls run(). Denormal floats are flushed to zero inside of
/// run(); see FlushDenormals.
class ThreadPool {
 public:
  /// `threads` >= 1, the caller included: a pool of 1 starts no thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return threads_.size(); }

  /// Calls work(part, thread) for every part in [0, parts) and returns when all calls have returned. Thread t
  /// runs the t-th of size() nearly equal ranges of parts, in order; thread 0 is the caller. The assignment
  /// does not depend on timing, so a thread finds in its cache what it wrote in the step before. A single
  /// part runs on the caller. `work` must be noexcept. Allocates nothing.
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

  struct alignas(64) Thread {
    std::atomic<std::uint32_t> unclaimed{0};
    SpinBudget spin;
  };

  void run_task(const Task& task);
  std::uint32_t run_parts(std::size_t thread);
  void work(std::size_t thread);

  const Task* task_ = nullptr;
  std::vector<Thread> threads_;
  WaitableCounter generation_;
  WaitableCounter unfinished_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace sweep::cpu
