// The largest output, and one-hot targets. Compiled once per Highway target.
#if defined(SWEEP_CORE_KERNELS_CPU_CLASS_OUTPUTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_CLASS_OUTPUTS_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_CLASS_OUTPUTS_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_CLASS_OUTPUTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// The largest of each image's outputs: its value and its class.
struct ArgMax {
  Vector value;
  hn::Vec<hn::RebindToSigned<Lanes>> index;
};

HWY_INLINE ArgMax largest(Lanes d, const float* outputs, std::size_t classes) {
  const hn::RebindToSigned<Lanes> di;
  ArgMax best{hn::Load(d, outputs), hn::Zero(di)};
  for (std::size_t c = 1; c < classes; ++c) {
    const Vector x = hn::Load(d, outputs + c * kLanes);
    // As in PyTorch, NaN is larger than every number, and the first of equal values is the maximum.
    const auto larger = hn::Or(hn::Gt(x, best.value), hn::AndNot(hn::IsNaN(best.value), hn::IsNaN(x)));
    best.value = hn::IfThenElse(larger, x, best.value);
    best.index =
        hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<std::int32_t>(c)), best.index);
  }
  return best;
}

// 1 where the class is the label, else 0.
HWY_INLINE Vector one_hot(Lanes d, hn::Vec<hn::RebindToSigned<Lanes>> label, std::size_t c) {
  const hn::RebindToSigned<Lanes> di;
  const auto is_label = hn::RebindMask(d, hn::Eq(label, hn::Set(di, static_cast<std::int32_t>(c))));
  return hn::IfThenElseZero(is_label, hn::Set(d, 1.0f));
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
