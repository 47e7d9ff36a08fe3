#include "core/kernels/cpu/kernels/layer_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/linear_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// Accumulators of a tile; each loaded vector of x is used for as many broadcast weights.
inline constexpr int kLinearTile = kManyRegisters ? 16 : 8;

// y[o] = Σ weight[o] · x over all inputs, for kOutputs outputs from the first of `panel` on. Stores `count`
// of them: the others are the last panel's padding.
template <int kOutputs>
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
      for (int o = 0; o < kOutputs; ++o) acc[o] = hn::MulAdd(hn::Set(d, w[o]), value, acc[o]);
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

void linear_forward(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                    const float* x, float* y) {
  for (std::size_t o = 0; o < out; o += kLinearTile) {
    const float* panel = panels + o / kLanes * in * kLanes + o % kLanes;
    forward_tile<kLinearTile>(panel, bias == nullptr ? nullptr : bias + o, in, relu,
                              std::min<std::size_t>(kLinearTile, out - o), x, y + o * kLanes);
  }
}

// grad_x[i] = Σ weight[o][i] · grad_y[o] over all outputs o, for kInputs inputs.
template <int kInputs>
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
        acc[i] = hn::MulAdd(hn::Set(d, w[static_cast<std::size_t>(i) * kLanes]), value, acc[i]);
    }
    for (int i = 0; i < kInputs; ++i)
      hn::Store(acc[i], d, grad_x + static_cast<std::size_t>(i) * kLanes + lane);
  }
}

void linear_backward_input(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                           float* grad_x) {
  std::size_t i = 0;
  for (; i + kLinearTile <= in; i += kLinearTile)
    input_tile<kLinearTile>(panels + i * kLanes, in, out, grad_y, grad_x + i * kLanes);
  for (; i + 4 <= in; i += 4) input_tile<4>(panels + i * kLanes, in, out, grad_y, grad_x + i * kLanes);
  for (; i < in; ++i) input_tile<1>(panels + i * kLanes, in, out, grad_y, grad_x + i * kLanes);
}

// grad_panel[i][o] += Σ x[i][image] · grad_y[o][image] over the images, for kInputs inputs. `transposed` is
// grad_y of the panel as [image][kLanes outputs].
template <int kInputs>
HWY_INLINE void weight_tile(const float* transposed, const float* x, float* grad_panel) {
  const Lanes d;
  for (std::size_t o = 0; o < kLanes; o += hn::Lanes(d)) {
    Vector acc[kInputs];
    for (int i = 0; i < kInputs; ++i)
      acc[i] = hn::Load(d, grad_panel + static_cast<std::size_t>(i) * kLanes + o);
    for (std::size_t image = 0; image < kLanes; ++image) {
      const Vector dy = hn::Load(d, transposed + image * kLanes + o);
      for (int i = 0; i < kInputs; ++i) {
        acc[i] = hn::MulAdd(hn::Set(d, x[static_cast<std::size_t>(i) * kLanes + image]), dy, acc[i]);
      }
    }
    for (int i = 0; i < kInputs; ++i)
      hn::Store(acc[i], d, grad_panel + static_cast<std::size_t>(i) * kLanes + o);
  }
}

void linear_backward_weights(std::size_t in, std::size_t out, const float* x, const float* grad_y,
                             float* grad_panels, float* grad_bias) {
  HWY_ALIGN float transposed[kLanes * kLanes];
  for (std::size_t first = 0; first < out; first += kLanes) {
    const std::size_t count = HWY_MIN(kLanes, out - first);
    for (std::size_t o = 0; o < kLanes; ++o) {
      const float* row = grad_y + (first + o) * kLanes;
      for (std::size_t image = 0; image < kLanes; ++image)
        transposed[image * kLanes + o] = o < count ? row[image] : 0.0f;
    }
    float* panel = grad_panels + first * in;
    std::size_t i = 0;
    for (; i + kLinearTile <= in; i += kLinearTile)
      weight_tile<kLinearTile>(transposed, x + i * kLanes, panel + i * kLanes);
    for (; i + 4 <= in; i += 4) weight_tile<4>(transposed, x + i * kLanes, panel + i * kLanes);
    for (; i < in; ++i) weight_tile<1>(transposed, x + i * kLanes, panel + i * kLanes);
    if (grad_bias == nullptr) continue;
    for (std::size_t o = 0; o < count; ++o) {
      float sum = 0;
      for (std::size_t image = 0; image < kLanes; ++image) sum += transposed[image * kLanes + o];
      grad_bias[first + o] += sum;
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(linear_forward);
SWEEP_EXPORT_KERNEL(linear_backward_input);
SWEEP_EXPORT_KERNEL(linear_backward_weights);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
