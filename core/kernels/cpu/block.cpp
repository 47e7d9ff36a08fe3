#include "core/kernels/cpu/block.h"

#include <algorithm>
#include <new>

namespace sweep::cpu {
namespace {
constexpr std::align_val_t kAlignment{64};
}

AlignedBuffer::AlignedBuffer(std::size_t floats) : size_(round_to_line(floats)) {
  data_ = static_cast<float*>(::operator new(size_ * sizeof(float), kAlignment));
  fill_zero();
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::operator delete(data_, kAlignment);
}

void AlignedBuffer::fill_zero() { std::fill_n(data_, size_, 0.0f); }

}  // namespace sweep::cpu
