// The table of Bf16Kernels for one arithmetic; compiled once per Highway target and source.
#if defined(SWEEP_CORE_KERNELS_CPU_BF16_TABLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_BF16_TABLES_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_BF16_TABLES_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_BF16_TABLES_INL_H_
#endif

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"
#include "core/kernels/cpu/kernels/conv_tiles-inl.h"
#include "core/kernels/cpu/kernels/linear_tiles-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

template <class Arithmetic>
const Bf16Kernels& bf16_table() {
  static constexpr Bf16Kernels kTable = {
      kMaxChannelTile,
      conv_forward_tiles<Arithmetic>,
      conv_pool_forward_tiles<Arithmetic>,
      conv_backward_input_tiles<Arithmetic>,
      linear_forward_tiles<Arithmetic>,
      linear_backward_input_tiles<Arithmetic>,
  };
  return kTable;
}

}  // namespace
}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
