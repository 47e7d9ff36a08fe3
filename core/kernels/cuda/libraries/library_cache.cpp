#include "core/kernels/cuda/libraries/library_cache.h"

#include <map>
#include <mutex>

namespace sweep::cuda {
namespace {

struct Cache {
  std::mutex mutex;
  std::map<int, std::shared_ptr<const Libraries>> by_device;
};

// Never destroyed: handles must not be closed after the CUDA runtime, whose end this file cannot order.
Cache& cache() {
  static auto* const instance = new Cache;
  return *instance;
}

}  // namespace

std::shared_ptr<const Libraries> shared_libraries(int device) {
  Cache& known = cache();
  const std::scoped_lock lock(known.mutex);
  if (const auto found = known.by_device.find(device); found != known.by_device.end()) return found->second;
  auto libraries = std::make_shared<const Libraries>(open_libraries(device));
  if (libraries->complete) known.by_device.emplace(device, libraries);
  return libraries;
}

void forget_shared_libraries() {
  Cache& known = cache();
  const std::scoped_lock lock(known.mutex);
  known.by_device.clear();
}

}  // namespace sweep::cuda
