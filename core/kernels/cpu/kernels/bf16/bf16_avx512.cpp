// bf16 with VDPBF16PS. Compiled for processors that have it, whatever the rest of the program is compiled
// for: nothing here may run before bf16_hardware_kernels() has looked.
#define HWY_COMPILE_ONLY_STATIC
#include <immintrin.h>

#include "core/kernels/cpu/kernels/bf16/bf16_avx512.h"
#include "core/kernels/cpu/kernels/bf16/bf16_tables-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

#if HWY_TARGET != HWY_AVX3
#error "compile this file with the flags that core/kernels/cpu/CMakeLists.txt gives it"
#endif

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

struct Avx512Bf16 {
  static HWY_INLINE Vector multiply_add(Lanes /*d*/, Vector weight, Vector x, Vector sum) {
    return Vector{
        _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(weight.raw), reinterpret_cast<__m512bh>(x.raw))};
  }
};

}  // namespace

const Bf16Kernels& avx512_table() { return bf16_table<Avx512Bf16>(); }

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace sweep::cpu {
const Bf16Kernels& bf16_avx512_kernels() { return HWY_STATIC_DISPATCH(avx512_table)(); }
}  // namespace sweep::cpu
