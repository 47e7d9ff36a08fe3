#include "core/kernels/cpu/kernels/layer_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/pool_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// The part of a window inside the image, along one axis.
struct Span {
  std::size_t begin, end;
};

HWY_INLINE Span window_span(std::size_t out, std::size_t stride, std::size_t pad, std::size_t kernel,
                            std::size_t extent) {
  const std::size_t start = out * stride;
  return {start > pad ? start - pad : 0, HWY_MIN(start + kernel - pad, extent)};
}

// The inputs of one output, and the number that divides their sum.
struct Window {
  Span rows, columns;
  std::size_t count;
};

HWY_INLINE Window window_of(const PoolGeometry& g, Average average, std::size_t y, std::size_t x) {
  const auto adaptive_span = [](std::size_t i, std::size_t in, std::size_t out) {
    return Span{i * in / out, ((i + 1) * in + out - 1) / out};
  };
  const bool adaptive = average == Average::kAdaptive;
  const Span rows = adaptive ? adaptive_span(y, g.in_height, g.out_height)
                             : window_span(y, g.stride_y, g.pad_y, g.kernel_height, g.in_height);
  const Span columns = adaptive ? adaptive_span(x, g.in_width, g.out_width)
                                : window_span(x, g.stride_x, g.pad_x, g.kernel_width, g.in_width);
  return {rows, columns,
          average == Average::kWithPadding ? g.kernel_height * g.kernel_width
                                           : (rows.end - rows.begin) * (columns.end - columns.begin)};
}

// Calls use(window, first, output) for every output and vector of images: `first` is where the window's
// channel begins in the input, `output` where the output is.
template <class Use>
HWY_INLINE void for_each_window(const PoolGeometry& g, Average average, const Use& use) {
  std::size_t output = 0;
  for (std::size_t c = 0; c < g.channels; ++c) {
    for (std::size_t y = 0; y < g.out_height; ++y) {
      for (std::size_t x = 0; x < g.out_width; ++x, output += kLanes) {
        const Window window = window_of(g, average, y, x);
        for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(Lanes()))
          use(window, c * g.in_height * g.in_width * kLanes + lane, output + lane);
      }
    }
  }
}

void max_pool_forward(const PoolGeometry& g, const float* in, float* out, float* argmax) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const auto use = [&](const Window& window, std::size_t first, std::size_t output) HWY_ATTR {
    const std::size_t corner = window.rows.begin * g.in_width + window.columns.begin;
    Vector largest = hn::Load(d, in + first + corner * kLanes);
    auto index = hn::Set(di, static_cast<std::int32_t>(corner));
    for (std::size_t y = window.rows.begin; y < window.rows.end; ++y) {
      for (std::size_t x = window.columns.begin; x < window.columns.end; ++x) {
        const std::size_t position = y * g.in_width + x;
        const Vector value = hn::Load(d, in + first + position * kLanes);
        const auto wins = hn::Or(hn::Gt(value, largest), hn::IsNaN(value));
        largest = hn::IfThenElse(wins, value, largest);
        index =
            hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<std::int32_t>(position)), index);
      }
    }
    hn::Store(largest, d, out + output);
    hn::Store(hn::BitCast(d, index), d, argmax + output);
  };
  for_each_window(g, Average::kInside, use);
}

// One over the number of a window's inputs.
HWY_INLINE Vector share_of(Lanes d, const Window& window) {
  return hn::Set(d, 1.0f / static_cast<float>(window.count));
}

void avg_pool_forward(const PoolGeometry& g, Average average, const float* in, float* out) {
  const Lanes d;
  for_each_window(g, average, [&](const Window& window, std::size_t first, std::size_t output) HWY_ATTR {
    Vector sum = hn::Zero(d);
    for (std::size_t y = window.rows.begin; y < window.rows.end; ++y) {
      for (std::size_t x = window.columns.begin; x < window.columns.end; ++x)
        sum = hn::Add(sum, hn::Load(d, in + first + (y * g.in_width + x) * kLanes));
    }
    hn::Store(hn::Mul(sum, share_of(d, window)), d, out + output);
  });
}

void avg_pool_backward(const PoolGeometry& g, Average average, const float* grad_out, float* grad_in) {
  const Lanes d;
  std::fill_n(grad_in, g.channels * g.in_height * g.in_width * kLanes, 0.0f);
  for_each_window(g, average, [&](const Window& window, std::size_t first, std::size_t output) HWY_ATTR {
    const Vector value = hn::Mul(hn::Load(d, grad_out + output), share_of(d, window));
    for (std::size_t y = window.rows.begin; y < window.rows.end; ++y) {
      for (std::size_t x = window.columns.begin; x < window.columns.end; ++x) {
        float* at = grad_in + first + (y * g.in_width + x) * kLanes;
        hn::Store(hn::Add(hn::Load(d, at), value), d, at);
      }
    }
  });
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(max_pool_forward);
SWEEP_EXPORT_KERNEL(avg_pool_forward);
SWEEP_EXPORT_KERNEL(avg_pool_backward);

void max_pool_backward(const PoolGeometry& g, const float* grad_out, const float* argmax, float* grad_in) {
  const std::size_t in_plane = g.in_height * g.in_width * kLanes,
                    out_plane = g.out_height * g.out_width * kLanes;
  std::fill_n(grad_in, g.channels * in_plane, 0.0f);
  for (std::size_t c = 0; c < g.channels; ++c) {
    float* plane = grad_in + c * in_plane;
    for (std::size_t i = c * out_plane; i < (c + 1) * out_plane; ++i) {
      std::int32_t position;
      std::memcpy(&position, argmax + i, sizeof position);
      plane[static_cast<std::size_t>(position) * kLanes + i % kLanes] += grad_out[i];
    }
  }
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
