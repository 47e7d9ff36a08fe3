#include "core/kernels/cpu/kernels/linear_kernels.h"

#include "core/kernels/cpu/kernels/bf16_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/linear_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/kernels/linear_tiles-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

void linear_forward(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                    const float* x, float* y) {
  linear_forward_tiles<Fp32Arithmetic>(panels, bias, in, out, relu, x, y);
}

void linear_backward_input(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                           float* grad_x) {
  linear_backward_input_tiles<Fp32Arithmetic>(panels, in, out, grad_y, grad_x);
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

HWY_EXPORT(linear_forward);
HWY_EXPORT(linear_backward_input);
HWY_EXPORT(linear_backward_weights);

void linear_forward(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                    const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(linear_forward)(panels, bias, in, out, relu, x, y);
}

void linear_backward_input(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                           float* grad_x) {
  HWY_DYNAMIC_DISPATCH(linear_backward_input)(panels, in, out, grad_y, grad_x);
}

void linear_backward_weights(std::size_t in, std::size_t out, const float* x, const float* grad_y,
                             float* grad_panels, float* grad_bias) {
  HWY_DYNAMIC_DISPATCH(linear_backward_weights)(in, out, x, grad_y, grad_panels, grad_bias);
}

void pack_linear_weights(const float* weights, std::size_t in, std::size_t out, float* panels) {
  for (std::size_t o = 0; o < linear_panels(out) * kLanes; ++o) {
    float* column = panels + o / kLanes * in * kLanes + o % kLanes;
    for (std::size_t i = 0; i < in; ++i) column[i * kLanes] = o < out ? weights[o * in + i] : 0.0f;
  }
}

void unpack_linear_weights(const float* panels, std::size_t in, std::size_t out, float* weights) {
  for (std::size_t o = 0; o < out; ++o) {
    const float* column = panels + o / kLanes * in * kLanes + o % kLanes;
    for (std::size_t i = 0; i < in; ++i) weights[o * in + i] = column[i * kLanes];
  }
}

void pack_linear_input_pairs(const float* panels, std::size_t in, std::size_t out, float* pairs) {
  for (std::size_t panel = 0; panel < linear_panels(out); ++panel) {
    pack_channel_pairs(panels + panel * in * kLanes, in, kLanes, kLanes,
                       pairs + panel * pair_count(in) * kLanes);
  }
}

void pack_linear_output_pairs(const float* panels, std::size_t in, std::size_t out, float* pairs) {
  const std::size_t count = linear_panels(out), floats = in * kLanes;
  for (std::size_t panel = 0; panel < count; panel += 2) {
    const float* first = panels + panel * floats;
    const float* second = panel + 1 < count ? first + floats : nullptr;
    for (std::size_t i = 0; i < floats; i += kLanes)
      pack_adjacent_pairs(first + i, second == nullptr ? nullptr : second + i,
                          pairs + panel / 2 * floats + i);
  }
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
