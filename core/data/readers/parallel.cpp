#include "core/data/readers/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
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
    next_ = count_;  // for those that ran when another could not be started
    join();
  }

  void start(std::size_t threads) {
    const BlockSignals block;
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }

  // Waits for the end. Throws the first exception.
  void finish() {
    join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void run() {
    try {
      for (std::size_t i = next_++; i < count_; i = next_++) work_(i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  Loop loop(count, work);
  loop.start(std::min(threads > 0 ? threads : usable_cores(), std::max<std::size_t>(count, 1)));
  loop.finish();
}

}  // namespace sweep
