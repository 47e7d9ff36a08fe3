#include "core/kernels/cpu/simd/block.h"

#include <algorithm>
#include <new>

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

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t floats) : size_(round_up_to_cache_line(floats)) {
  const std::size_t bytes = size_ * sizeof(float);
  data_ = static_cast<float*>(::operator new(bytes, alignment_of(bytes)));
#ifdef __linux__
  // A hint: without large pages everything works, somewhat slower.
  if (alignment_of(bytes) == kLargePage) static_cast<void>(madvise(data_, bytes, MADV_HUGEPAGE));
#endif
  fill_zero();
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::operator delete(data_, alignment_of(size_ * sizeof(float)));
}

void AlignedBuffer::fill_zero() { std::fill_n(data_, size_, 0.0f); }

}  // namespace sweep::cpu
