// Vector types shared by the CPU kernels.
//
// A kernel source includes itself through hwy/foreach_target.h once per instruction set (baseline, AVX2,
// AVX-512, NEON), each time in another namespace HWY_NAMESPACE and with other compiler flags;
// HWY_DYNAMIC_DISPATCH then picks the best one that the processor has. Headers that end in -inl.h have the
// toggled include guard below, so that they are compiled again for each instruction set.
#if defined(SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_SIMD_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "core/kernels/cpu/simd/block.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most kLanes floats; kernels loop over a block with narrower ones.
using Lanes = hn::CappedTag<float, kLanes>;
using Vector = hn::Vec<Lanes>;

// Output channels of a convolution tile. A tile has kMaxChannelTile × 4 accumulators: 24 of the 32 registers
// of AVX-512 and NEON, 12 of the 16 elsewhere. The others hold its 4 inputs and a broadcast weight.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr int kMaxChannelTile = 6;
inline constexpr bool kManyRegisters = true;
#else
inline constexpr int kMaxChannelTile = 3;
inline constexpr bool kManyRegisters = false;
#endif

// ReLU: max(0, x), but NaN for NaN, so that a diverged network stays visible.
HWY_INLINE Vector positive_part(Lanes d, Vector x) { return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x); }

// Stores the maximum of a 2×2 window and its argmax, int32: which of the 4
// values, or 4 where ReLU made the maximum zero.
HWY_INLINE void pool_window(Lanes d, const Vector (&values)[4], bool relu, float* out, float* argmax) {
  const hn::RebindToSigned<Lanes> di;
  Vector largest = values[0];
  auto index = hn::Zero(di);
  for (int p = 1; p < 4; ++p) {
    // As in PyTorch, the first of equal values is the maximum, and NaN is larger than every number.
    const auto wins = hn::Or(hn::Gt(values[p], largest), hn::IsNaN(values[p]));
    largest = hn::IfThenElse(wins, values[p], largest);
    index = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, p), index);
  }
  if (relu) {
    const auto cut = hn::Le(largest, hn::Zero(d));
    largest = hn::IfThenZeroElse(cut, largest);
    index = hn::IfThenElse(hn::RebindMask(di, cut), hn::Set(di, 4), index);
  }
  hn::Store(largest, d, out);
  hn::Store(hn::BitCast(d, index), d, argmax);
}

// Calls use(std::integral_constant<int, n>) for a number n in 1 … kMax that is known at run time only.
template <int kMax, class Use>
HWY_INLINE void with_count(std::size_t n, const Use& use) {
  if constexpr (kMax > 0) {
    if (n == kMax) return use(std::integral_constant<int, kMax>());
    with_count<kMax - 1>(n, use);
  }
}

// Calls use(first, std::integral_constant<int, n>) for nearly equal runs of n <= kMax that [0, total) is cut
// into: 8 with at most 6 are two runs of 4, not 6 and 2.
template <int kMax, class Use>
HWY_INLINE void for_each_run(std::size_t total, const Use& use) {
  const std::size_t runs = (total + kMax - 1) / kMax;
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t first = part_begin(total, runs, run);
    with_count<kMax>(part_begin(total, runs, run + 1) - first,
                     [&](auto count) HWY_ATTR { use(first, count); });
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
