// A few threads that stay for the life of an engine and share each step's work by a fixed rule.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace sweep::cpu {

/// Not thread-safe: one thread owns the pool and calls run().
class ThreadPool {
 public:
  /// `threads` >= 1, the caller included: a pool of 1 starts no thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }

  /// Calls work(part, thread) for every part in [0, parts); returns when all are done. Thread t takes the
  /// t-th of size() nearly equal runs of parts, so who does what never depends on timing. `work` must not
  /// throw. Allocates nothing.
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

  void run_task(const Task& task);
  void run_parts(const Task& task, std::size_t thread) const;
  void work(std::size_t thread);

  const Task* task_ = nullptr;                // published by generation_
  std::atomic<std::uint32_t> generation_{0};  // grows by one per task
  std::atomic<std::uint32_t> unfinished_{0};  // workers still busy with the current task
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace sweep::cpu
