// The maximum of a pooling window. Compiled once per Highway target and source.
#if defined(SWEEP_CORE_KERNELS_CPU_POOL_WINDOW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_POOL_WINDOW_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_POOL_WINDOW_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_POOL_WINDOW_INL_H_
#endif

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// Stores the maximum of a 2×2 window and its argmax as conv_pool_forward() defines them.
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

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
