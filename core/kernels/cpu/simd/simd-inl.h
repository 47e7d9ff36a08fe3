// Vector types shared by the CPU kernels; compiled once per Highway target.
#if defined(SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_
#endif

#include "core/kernels/cpu/simd/block.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most one block wide; narrower vectors pass over a block several times.
using Lanes = hn::CappedTag<float, kLanes>;
using Vector = hn::Vec<Lanes>;

// Output channels of a convolution tile: × 4 positions they fill most of the registers (32 with AVX-512 and
// NEON, else 16).
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kMaxChannelTile = 6;
inline constexpr bool kManyRegisters = true;
#else
inline constexpr int kMaxChannelTile = 3;
inline constexpr bool kManyRegisters = false;
#endif

// max(0, x), but a NaN stays one: a diverged network has to stay visible.
HWY_INLINE Vector positive_part(Lanes d, Vector x) { return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x); }

// How a tile adds a product to a sum; see bf16_kernels.h for others.
struct Fp32Arithmetic {
  static HWY_INLINE Vector multiply_add(Lanes /*d*/, Vector weight, Vector x, Vector sum) {
    return hn::MulAdd(weight, x, sum);
  }
};

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
