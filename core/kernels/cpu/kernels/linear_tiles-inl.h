// The register tiles of linear_kernels.h as templates over the arithmetic: fp32, or bf16 pairs
// (bf16_kernels.h), whose elements are 32 bits, too. Compiled once per Highway target and source.
#if defined(SWEEP_CORE_KERNELS_CPU_LINEAR_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_LINEAR_TILES_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_LINEAR_TILES_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_LINEAR_TILES_INL_H_
#endif

#include <algorithm>

#include "core/kernels/cpu/kernels/linear_kernels.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
// Anonymous, because bf16_avx512.cpp is compiled with more instructions than the target has: the linker must
// not merge its instances with those of other sources.
namespace {

// Accumulators of a tile; each loaded vector of x is used for as many broadcast weights.
inline constexpr int kLinearTile = kManyRegisters ? 16 : 8;

// y[o] = Σ weight[o] · x over all inputs, for kOutputs outputs from the first of `panel` on, of which `count`
// are stored: the others are the last panel's padding.
template <class Arithmetic, int kOutputs>
HWY_INLINE void forward_tile(const float* panel, const float* bias, std::size_t in, bool relu,
                             std::size_t count, const float* x, float* y) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      const bool stored = static_cast<std::size_t>(o) < count;
      acc[o] = bias != nullptr && stored ? hn::Set(d, bias[o]) : hn::Zero(d);
    }
    const float* w = panel;
    const float* x_at = x + lane;
    for (std::size_t i = 0; i < in; ++i) {
      const Vector value = hn::Load(d, x_at);
      for (int o = 0; o < kOutputs; ++o)
        acc[o] = Arithmetic::multiply_add(d, hn::Set(d, w[o]), value, acc[o]);
      w += kLanes;
      x_at += kLanes;
    }
    for (int o = 0; o < kOutputs; ++o) {
      if (static_cast<std::size_t>(o) >= count) break;
      const Vector value = relu ? positive_part(d, acc[o]) : acc[o];
      hn::Store(value, d, y + static_cast<std::size_t>(o) * kLanes + lane);
    }
  }
}

template <class Arithmetic>
HWY_INLINE void linear_forward_tiles(const float* panels, const float* bias, std::size_t in, std::size_t out,
                                     bool relu, const float* x, float* y) {
  for (std::size_t o = 0; o < out; o += kLinearTile) {
    const float* panel = panels + o / kLanes * in * kLanes + o % kLanes;
    forward_tile<Arithmetic, kLinearTile>(panel, bias == nullptr ? nullptr : bias + o, in, relu,
                                          std::min<std::size_t>(kLinearTile, out - o), x, y + o * kLanes);
  }
}

// grad_x[i] = Σ weight[o][i] · grad_y[o] over all outputs o, for kInputs inputs.
template <class Arithmetic, int kInputs>
HWY_INLINE void input_tile(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                           float* grad_x) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kInputs];
    for (int i = 0; i < kInputs; ++i) acc[i] = hn::Zero(d);
    for (std::size_t o = 0; o < out; ++o) {
      const Vector value = hn::Load(d, grad_y + o * kLanes + lane);
      const float* w = panels + o / kLanes * in * kLanes + o % kLanes;
      for (int i = 0; i < kInputs; ++i)
        acc[i] =
            Arithmetic::multiply_add(d, hn::Set(d, w[static_cast<std::size_t>(i) * kLanes]), value, acc[i]);
    }
    for (int i = 0; i < kInputs; ++i)
      hn::Store(acc[i], d, grad_x + static_cast<std::size_t>(i) * kLanes + lane);
  }
}

template <class Arithmetic>
HWY_INLINE void linear_backward_input_tiles(const float* panels, std::size_t in, std::size_t out,
                                            const float* grad_y, float* grad_x) {
  std::size_t i = 0;
  for (; i + kLinearTile <= in; i += kLinearTile)
    input_tile<Arithmetic, kLinearTile>(panels + i * kLanes, in, out, grad_y, grad_x + i * kLanes);
  for (; i + 4 <= in; i += 4)
    input_tile<Arithmetic, 4>(panels + i * kLanes, in, out, grad_y, grad_x + i * kLanes);
  for (; i < in; ++i) input_tile<Arithmetic, 1>(panels + i * kLanes, in, out, grad_y, grad_x + i * kLanes);
}

}  // namespace
}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
