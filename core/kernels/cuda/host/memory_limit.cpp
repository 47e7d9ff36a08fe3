#include "core/kernels/cuda/host/memory_limit.h"

#include <atomic>
#include <limits>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda::host {
namespace {

std::atomic<std::size_t> limit{std::numeric_limits<std::size_t>::max()}, in_use{0};
std::atomic<std::size_t> shared_limit{std::size_t{227} << 10};

}  // namespace

void set_memory_limit(std::size_t bytes) { limit = bytes; }

void reserve_memory(std::size_t bytes, const std::string& purpose) {
  const std::size_t before = in_use.fetch_add(bytes);
  if (bytes <= limit && before <= limit - bytes) return;
  in_use -= bytes;
  throw DeviceError("cuda: out of memory: " + std::to_string(bytes) + " bytes asked for " + purpose +
                    ", but " + std::to_string(before < limit ? limit - before : 0) + " are free");
}

void release_memory(std::size_t bytes) { in_use -= bytes; }

std::size_t memory_in_use() { return in_use; }

void set_shared_limit(std::size_t bytes) { shared_limit = bytes; }

std::size_t memory_free() {
  const std::size_t taken = in_use;
  return taken < limit ? limit - taken : 0;
}

}  // namespace sweep::cuda::host

namespace sweep::cuda {

std::size_t shared_bytes_limit() { return host::shared_limit; }

}  // namespace sweep::cuda
