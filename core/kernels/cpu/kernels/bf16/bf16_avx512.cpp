// bf16 with VDPBF16PS. This source is compiled for processors that have it, unlike the rest of the program:
// nothing in it may run before bf16_hardware_kernels() has checked the processor.
#define HWY_COMPILE_ONLY_STATIC
#include <immintrin.h>

#include "core/kernels/cpu/kernels/bf16/bf16_avx512.h"
#include "core/kernels/cpu/kernels/bf16/bf16_tables-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

#if HWY_TARGET != HWY_AVX3
#error "compile this file with the flags that CMakeLists.txt beside it sets"
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
