#include "core/data/readers/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/threads.h"

namespace sweep {
namespace {

std::size_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return static_cast<std::size_t>(CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;  // the first
  const auto fail = [&] {
    next = count;
    const std::lock_guard lock(mutex);
    if (!error) error = std::current_exception();
  };
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      fail();
    }
  };
  {
    std::vector<std::jthread> running;  // which it waits for
    const BlockSignals block;
    try {
      while (running.size() < std::min(threads > 0 ? threads : usable_cores(), count))
        running.emplace_back(run);
    } catch (const std::system_error&) {  // a limit of threads is reached: those there are do it all
      if (running.empty()) run();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace sweep
