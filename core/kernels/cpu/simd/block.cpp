#include "core/kernels/cpu/simd/block.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <stdexcept>

namespace sweep::cpu {
namespace {

constexpr std::size_t kCacheLine = 64, kLargePage = std::size_t{2} << 20;

thread_local AllocationCount* counting = nullptr;

}  // namespace

AllocationCount::AllocationCount() {
  if (counting != nullptr) throw std::logic_error("allocations of this thread are counted already");
  counting = this;
}

AllocationCount::~AllocationCount() { counting = nullptr; }

bool AllocationCount::add(std::size_t bytes) {
  if (counting == nullptr) return false;
  counting->bytes_ += bytes;
  return true;
}

AlignedBuffer::AlignedBuffer(std::size_t floats) : size_(round_up_to_cache_line(floats)) {
  const std::size_t bytes = size_ * sizeof(float);
  // Kernels read the same pixel of many channels, which are far apart: with pages of 4 KiB that would be more
  // pages than the L1 TLB has entries for.
  const std::size_t alignment = bytes >= kLargePage ? kLargePage : kCacheLine;
  std::uintptr_t begin = 0;
  if (!AllocationCount::add(bytes)) {
    // Large memory comes from the system, which zeroes each page when it is first used.
    memory_.reset(std::calloc(bytes + alignment, 1));
    if (memory_ == nullptr) throw std::bad_alloc();
    begin = reinterpret_cast<std::uintptr_t>(memory_.get());
  }
  // If memory is only counted: an address to compute with; nothing is there.
  data_ = reinterpret_cast<float*>((begin / alignment + 1) * alignment);
  // A hint: without large pages everything works, somewhat slower.
  if (memory_ != nullptr && alignment == kLargePage) static_cast<void>(madvise(data_, bytes, MADV_HUGEPAGE));
}

}  // namespace sweep::cpu
