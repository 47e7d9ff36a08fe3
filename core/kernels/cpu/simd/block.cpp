#include "core/kernels/cpu/simd/block.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "core/kernels/cpu/simd/allocation_count.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace sweep::cpu {
namespace {

constexpr std::align_val_t kCacheLine{64}, kLargePage{std::size_t{2} << 20};

// Kernels read the same pixel of many channels, which are far apart: with pages of 4 KiB that would be more
// pages than the L1 TLB has entries for.
std::align_val_t alignment_of(std::size_t bytes) {
  return bytes >= static_cast<std::size_t>(kLargePage) ? kLargePage : kCacheLine;
}

thread_local AllocationCount* counting = nullptr;

constexpr std::size_t kPage = 4096;

// Addresses that nothing stands at: they can be computed with, but not be read.
float* reserve_addresses(std::size_t bytes) {
#ifdef __linux__
  void* addresses =
      mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) throw std::bad_alloc();
  return static_cast<float*>(addresses);
#else
  return static_cast<float*>(::operator new(bytes, kCacheLine));
#endif
}

void release_addresses(float* addresses, std::size_t bytes) {
#ifdef __linux__
  munmap(addresses, bytes + kPage);
#else
  ::operator delete(addresses, kCacheLine);
#endif
}

}  // namespace

AllocationCount::AllocationCount() {
  if (counting != nullptr) throw std::logic_error("allocations of this thread are counted already");
  counting = this;
}

AllocationCount::~AllocationCount() { counting = nullptr; }

bool AllocationCount::is_counting() { return counting != nullptr; }

bool AllocationCount::add(std::size_t bytes) {
  if (counting == nullptr) return false;
  counting->bytes_ += bytes;
  return true;
}

AlignedBuffer::AlignedBuffer(std::size_t floats) : size_(round_up_to_cache_line(floats)) {
  const std::size_t bytes = size_ * sizeof(float);
  if (AllocationCount::add(bytes)) {
    data_ = reserve_addresses(bytes);
    return;
  }
  data_ = static_cast<float*>(::operator new(bytes, alignment_of(bytes)));
#ifdef __linux__
  // A hint: without large pages everything works, somewhat slower.
  if (alignment_of(bytes) == kLargePage) static_cast<void>(madvise(data_, bytes, MADV_HUGEPAGE));
#endif
  fill_zero();
}

AlignedBuffer::~AlignedBuffer() {
  const std::size_t bytes = size_ * sizeof(float);
  if (data_ == nullptr) return;
  if (AllocationCount::is_counting())
    release_addresses(data_, bytes);
  else
    ::operator delete(data_, alignment_of(bytes));
}

void AlignedBuffer::fill_zero() { std::fill_n(data_, size_, 0.0f); }

}  // namespace sweep::cpu
