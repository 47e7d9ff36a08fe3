// How much dynamic shared memory each kernel has been allowed so far.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace sweep::cuda {

/// A kernel that wants more than 48 KiB of dynamic shared memory needs its limit raised first
/// (cudaFuncAttributeMaxDynamicSharedMemorySize), and the driver checks the limit again whenever a graph with
/// the kernel is launched. So a limit must never go down: a second engine with a smaller network would break
/// the graphs of the first. Thread-safe.
class SharedMemoryLimits {
 public:
  /// Calls raise() if `kernel` needs more than 48 KiB on `device` and more than it was allowed before. If
  /// raise() throws, the old limit stays.
  template <class Raise>
  void require(int device, const void* kernel, std::size_t bytes, const Raise& raise) {
    constexpr std::size_t kDefaultLimit = std::size_t{48} << 10;
    if (bytes <= kDefaultLimit) return;
    const std::scoped_lock lock(mutex_);
    const auto [limit, is_new] = limits_.try_emplace({device, kernel}, kDefaultLimit);
    if (bytes <= limit->second) return;
    raise();
    limit->second = bytes;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, const void*>, std::size_t> limits_;
};

}  // namespace sweep::cuda
