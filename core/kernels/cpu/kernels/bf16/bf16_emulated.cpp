// VDPBF16PS emulated by two multiply-adds, for processors without it.
#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/bf16/bf16_emulated.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/kernels/bf16/bf16_tables-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

struct EmulatedBf16 {
  // A bf16 is the upper half of a float. Products of two are exact, so sums round the same with
  // and without fused multiply-add.
  static HWY_INLINE Vector odd(Lanes d, Vector pairs) {
    const hn::RebindToUnsigned<Lanes> du;
    return hn::BitCast(d, hn::And(hn::BitCast(du, pairs), hn::Set(du, 0xFFFF0000u)));
  }
  static HWY_INLINE Vector even(Lanes d, Vector pairs) {
    const hn::RebindToUnsigned<Lanes> du;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(du, pairs)));
  }
  static HWY_INLINE Vector multiply_add(Lanes d, Vector weight, Vector x, Vector sum) {
    sum = hn::MulAdd(odd(d, weight), odd(d, x), sum);
    return hn::MulAdd(even(d, weight), even(d, x), sum);
  }
};

}  // namespace

const Bf16Kernels& emulated_kernels() { return bf16_table<EmulatedBf16>(); }

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {
HWY_EXPORT(emulated_kernels);
const Bf16Kernels& bf16_emulated_kernels() { return HWY_DYNAMIC_DISPATCH(emulated_kernels)(); }
}  // namespace sweep::cpu
#endif  // HWY_ONCE
