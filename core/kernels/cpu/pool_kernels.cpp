#include "core/kernels/cpu/pool_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/pool_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd-inl.h"

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

void max_pool_forward(const PoolGeometry& g, const float* in, float* out, float* winner) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  for (std::size_t c = 0; c < g.channels; ++c) {
    const float* plane = in + c * g.in_height * g.in_width * kLanes;
    for (std::size_t y = 0; y < g.out_height; ++y) {
      const Span rows = window_span(y, g.stride_y, g.pad_y, g.kernel_height, g.in_height);
      for (std::size_t x = 0; x < g.out_width; ++x) {
        const Span columns = window_span(x, g.stride_x, g.pad_x, g.kernel_width, g.in_width);
        for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
          const std::size_t first = rows.begin * g.in_width + columns.begin;
          Vector largest = hn::Load(d, plane + first * kLanes + lane);
          auto index = hn::Set(di, static_cast<std::int32_t>(first));
          for (std::size_t iy = rows.begin; iy < rows.end; ++iy) {
            for (std::size_t ix = columns.begin; ix < columns.end; ++ix) {
              const std::size_t position = iy * g.in_width + ix;
              const Vector value = hn::Load(d, plane + position * kLanes + lane);
              const auto wins = hn::Or(hn::Gt(value, largest), hn::IsNaN(value));
              largest = hn::IfThenElse(wins, value, largest);
              index = hn::IfThenElse(hn::RebindMask(di, wins),
                                     hn::Set(di, static_cast<std::int32_t>(position)), index);
            }
          }
          hn::Store(largest, d, out + lane);
          hn::Store(hn::BitCast(d, index), d, winner + lane);
        }
        out += kLanes;
        winner += kLanes;
      }
    }
  }
}

void relu_forward(const float* in, std::size_t floats, float* out) {
  const Lanes d;
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    hn::Store(positive_part(d, hn::Load(d, in + i)), d, out + i);
  }
}

void relu_backward(const float* grad_out, const float* out, std::size_t floats, float* grad_in) {
  const Lanes d;
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    const auto passes = hn::Gt(hn::Load(d, out + i), hn::Zero(d));
    hn::Store(hn::IfThenElseZero(passes, hn::Load(d, grad_out + i)), d, grad_in + i);
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(max_pool_forward);
HWY_EXPORT(relu_forward);
HWY_EXPORT(relu_backward);

void max_pool_forward(const PoolGeometry& g, const float* in, float* out, float* winner) {
  HWY_DYNAMIC_DISPATCH(max_pool_forward)(g, in, out, winner);
}

void max_pool_backward(const PoolGeometry& g, const float* grad_out, const float* winner, float* grad_in) {
  const std::size_t in_plane = g.in_height * g.in_width * kLanes,
                    out_plane = g.out_height * g.out_width * kLanes;
  std::fill_n(grad_in, g.channels * in_plane, 0.0f);
  for (std::size_t c = 0; c < g.channels; ++c) {
    float* plane = grad_in + c * in_plane;
    for (std::size_t i = c * out_plane; i < (c + 1) * out_plane; ++i) {
      std::int32_t position;
      std::memcpy(&position, winner + i, sizeof position);
      plane[static_cast<std::size_t>(position) * kLanes + i % kLanes] += grad_out[i];
    }
  }
}

void relu_forward(const float* in, std::size_t floats, float* out) {
  HWY_DYNAMIC_DISPATCH(relu_forward)(in, floats, out);
}

void relu_backward(const float* grad_out, const float* out, std::size_t floats, float* grad_in) {
  HWY_DYNAMIC_DISPATCH(relu_backward)(grad_out, out, floats, grad_in);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
