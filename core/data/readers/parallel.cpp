#include "core/data/readers/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/block_signals.h"

namespace sweep {
namespace {

std::size_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return static_cast<std::size_t>(CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

class Loop {
 public:
  Loop(std::size_t count, const std::function<void(std::size_t)>& work) : count_(count), work_(work) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    next_ = count_;
    for (std::thread& thread : threads_) thread.join();
  }

  void start(std::size_t threads) {
    const BlockSignals block;
    for (std::size_t i = 0; i < threads; ++i) {
      const std::lock_guard lock(mutex_);
      threads_.emplace_back([this] { run(); });
      ++running_;
    }
  }

  /// Waits for the end, or 0.2 s. Returns true at the end.
  bool wait() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, std::chrono::milliseconds(200), [this] { return running_ == 0; });
  }
  std::size_t done() const { return done_; }
  std::exception_ptr error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  void run() {
    try {
      for (std::size_t i = next_++; i < count_; i = next_++) {
        work_(i);
        ++done_;
      }
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) ended_.notify_all();
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t done, std::size_t total)>& progress) {
  Loop loop(count, work);
  loop.start(std::min(threads > 0 ? threads : usable_cores(), std::max<std::size_t>(count, 1)));
  while (!loop.wait()) {
    if (progress) progress(loop.done(), count);
  }
  if (const std::exception_ptr error = loop.error()) std::rethrow_exception(error);
  if (progress) progress(count, count);
}

}  // namespace sweep
