// Treats floats below 1.2e-38 as zero while the engine computes.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sweep::cpu {

/// While one lives, this thread's float arithmetic takes and gives zero for denormal numbers, which
/// processors handle in microcode, a hundred times slower: a weight that gets no gradient any more has
/// moments of Adam that decay into them.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | 0x8040u);
  }  // flush to zero, denormals are zero
  ~FlushDenormals() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | (std::uint64_t{1} << 24)));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  FlushDenormals() = default;
  ~FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  std::uint32_t saved_;
#elif defined(__aarch64__)
  std::uint64_t saved_;
#endif
};

}  // namespace sweep::cpu
