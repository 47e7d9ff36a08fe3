// Flushes denormal floats, those below 1.2e-38, to zero while the engine computes.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sweep::cpu {

/// While an object exists, this thread's float arithmetic reads and writes denormal numbers as zero
/// (FTZ and DAZ); the destructor restores the former mode. Processors handle denormals in microcode,
/// about a hundred times slower, and training produces them: Adam's moments of a weight that gets no
/// gradient any more decay into them.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | 0x8040u);  // bits 15 and 6: FTZ and DAZ
  }
  ~FlushDenormals() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ | (std::uint64_t{1} << 24)));  // FZ
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
