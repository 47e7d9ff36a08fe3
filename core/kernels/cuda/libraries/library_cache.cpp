#include "core/kernels/cuda/libraries/library_cache.h"

#include <map>
#include <mutex>

namespace sweep::cuda {
namespace {

template <class Shape>
struct Cache {
  std::mutex mutex;
  std::map<int, std::shared_ptr<const LayerLibrary<Shape>>> by_device;
};

// Never destroyed: handles must not be closed after the CUDA runtime, whose end this file cannot order.
template <class Shape>
Cache<Shape>& cache() {
  static auto* const instance = new Cache<Shape>;
  return *instance;
}

template <class Shape>
void forget() {
  const std::scoped_lock lock(cache<Shape>().mutex);
  cache<Shape>().by_device.clear();
}

}  // namespace

template <class Shape>
std::shared_ptr<const LayerLibrary<Shape>> shared_library(int device) {
  Cache<Shape>& known = cache<Shape>();
  const std::scoped_lock lock(known.mutex);
  auto& library = known.by_device[device];
  if (library == nullptr) library = open_library<Shape>(device);
  return library;
}

template std::shared_ptr<const LayerLibrary<LinearShape>> shared_library(int device);
template std::shared_ptr<const LayerLibrary<ConvShape>> shared_library(int device);

void forget_shared_libraries() {
  forget<LinearShape>();
  forget<ConvShape>();
}

}  // namespace sweep::cuda
