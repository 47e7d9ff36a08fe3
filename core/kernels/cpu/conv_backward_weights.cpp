// Gradient of a convolution's weights and bias, and the layout of the output gradient that it reads.
#include <algorithm>

#include "core/kernels/cpu/conv_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/conv_backward_weights.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// Sums held in registers: kChannels output channels × kColumns neighbouring taps of a kernel row.
inline constexpr int kChannelTile = kManyRegisters ? 4 : 2;
inline constexpr int kColumnTile = 5;

// Rows of the gradient that a pass covers, so that they stay in the L1 cache for all taps.
std::size_t rows_per_pass(const ConvGradient& gradient, const ConvGeometry& g, std::size_t channels) {
  constexpr std::size_t kL1Share = 24 * 1024 / sizeof(float);
  const std::size_t row_floats = channels * gradient.pitch * g.stride_y * kLanes;
  return HWY_MAX(std::size_t{1}, kL1Share / row_floats);
}

// sums[c][k] += Σ over rows and columns of gradient[channel c] · in[tap k].
template <int kChannels, int kColumns>
HWY_INLINE void sum_products(Lanes d, const ConvGeometry& g, const ConvGradient& gradient, const float* grad,
                             const float* in, std::size_t row_begin, std::size_t row_end, float* sums) {
  Vector acc[kChannels][kColumns];
  const std::size_t n = hn::Lanes(d);
  for (int c = 0; c < kChannels; ++c) {
    for (int k = 0; k < kColumns; ++k)
      acc[c][k] = hn::Load(d, sums + static_cast<std::size_t>(c * kColumns + k) * n);
  }
  const std::size_t tap_step = g.dilation_x * kLanes;
  const std::size_t grad_step = g.stride_x * kLanes, channel_floats = gradient.channel_floats();
  for (std::size_t y = row_begin; y < row_end; ++y) {
    const float* grad_at = grad + (y * g.stride_y * gradient.pitch + gradient.border) * kLanes;
    const float* in_at = in + y * g.stride_y * g.in_width * kLanes;
    for (std::size_t x = 0; x < g.out_width; ++x) {
      Vector dy[kChannels];
      for (int c = 0; c < kChannels; ++c)
        dy[c] = hn::Load(d, grad_at + static_cast<std::size_t>(c) * channel_floats);
      for (int k = 0; k < kColumns; ++k) {
        const Vector value = hn::Load(d, in_at + static_cast<std::size_t>(k) * tap_step);
        for (int c = 0; c < kChannels; ++c) acc[c][k] = hn::MulAdd(dy[c], value, acc[c][k]);
      }
      grad_at += grad_step;
      in_at += grad_step;
    }
  }
  for (int c = 0; c < kChannels; ++c) {
    for (int k = 0; k < kColumns; ++k)
      hn::Store(acc[c][k], d, sums + static_cast<std::size_t>(c * kColumns + k) * n);
  }
}

// One kernel row segment of one (channel tile, input channel): all positions of a pass.
struct ProductTile {
  template <int kChannels, int kColumns>
  static void run(const ConvGeometry& g, const ConvGradient& gradient, const float* grad, const float* in,
                  std::size_t row_begin, std::size_t row_end, float* sums) {
    sum_products<kChannels, kColumns>(Lanes(), g, gradient, grad, in, row_begin, row_end, sums);
  }
};

template <int kChannels, int kColumns = kColumnTile, class... Args>
HWY_INLINE void run_columns(std::size_t columns, Args... args) {
  if constexpr (kColumns > 0) {
    if (columns == kColumns) return ProductTile::run<kChannels, kColumns>(args...);
    run_columns<kChannels, kColumns - 1>(columns, args...);
  }
}

template <int kChannels = kChannelTile, class... Args>
HWY_INLINE void run_products(std::size_t channels, std::size_t columns, Args... args) {
  if constexpr (kChannels > 0) {
    if (channels == kChannels) return run_columns<kChannels>(columns, args...);
    run_products<kChannels - 1>(channels, columns, args...);
  }
}

// Adds the sums over lanes of `count` vectors to target[0], target[stride], …
HWY_INLINE void add_lane_sums(Lanes d, const float* sums, std::size_t count, float* target,
                              std::size_t stride) {
  for (std::size_t i = 0; i < count; ++i) {
    target[i * stride] += hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + i * hn::Lanes(d))));
  }
}

void conv_backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                           float* grad_weights, float* grad_bias) {
  const Lanes d;
  const std::size_t n = hn::Lanes(d);
  constexpr std::size_t kMaxTaps = 1024;  // of one channel tile: kernels up to 16×16 in one go
  HWY_ALIGN float sums[kMaxTaps * kLanes];
  const std::size_t tiles = (g.out_channels + kChannelTile - 1) / kChannelTile;
  const std::size_t segments = (g.kernel_width + kColumnTile - 1) / kColumnTile;
  for (std::size_t t = 0; t < tiles; ++t) {
    const std::size_t channel = part_begin(g.out_channels, tiles, t);
    const std::size_t channels = part_begin(g.out_channels, tiles, t + 1) - channel;
    const std::size_t pass = rows_per_pass(gradient, g, channels);
    const std::size_t kernel_rows = HWY_MIN(g.kernel_height, kMaxTaps / (channels * g.kernel_width));
    for (std::size_t lane = 0; lane < kLanes; lane += n) {
      const float* grad = gradient.data + channel * gradient.channel_floats() + lane;
      for (std::size_t c = 0; c < g.in_channels; ++c) {
        for (std::size_t first_ky = 0; first_ky < g.kernel_height; first_ky += kernel_rows) {
          const std::size_t end_ky = HWY_MIN(g.kernel_height, first_ky + kernel_rows);
          const std::size_t row_sums = channels * g.kernel_width * n;
          std::fill_n(sums, (end_ky - first_ky) * row_sums, 0.0f);
          for (std::size_t y = 0; y < g.out_height; y += pass) {
            const std::size_t end_y = HWY_MIN(g.out_height, y + pass);
            for (std::size_t ky = first_ky; ky < end_ky; ++ky) {
              for (std::size_t s = 0; s < segments; ++s) {
                const std::size_t kx = part_begin(g.kernel_width, segments, s);
                const std::size_t columns = part_begin(g.kernel_width, segments, s + 1) - kx;
                const std::size_t row = c * g.in_height + ky * g.dilation_y;
                const float* taps = in + (row * g.in_width + kx * g.dilation_x) * kLanes + lane;
                run_products(channels, columns, g, gradient, grad, taps, y, end_y,
                             sums + (ky - first_ky) * row_sums + channels * kx * n);
              }
            }
          }
          for (std::size_t ky = first_ky; ky < end_ky; ++ky) {
            for (std::size_t s = 0; s < segments; ++s) {
              const std::size_t kx = part_begin(g.kernel_width, segments, s);
              const std::size_t columns = part_begin(g.kernel_width, segments, s + 1) - kx;
              const float* segment = sums + (ky - first_ky) * row_sums + channels * kx * n;
              for (std::size_t i = 0; i < channels; ++i) {
                float* target =
                    grad_weights +
                    (((channel + i) * g.kernel_height + ky) * g.kernel_width + kx) * g.in_channels + c;
                add_lane_sums(d, segment + i * columns * n, columns, target, g.in_channels);
              }
            }
          }
        }
      }
      if (grad_bias == nullptr) continue;
      for (std::size_t i = 0; i < channels; ++i) {
        Vector sum = hn::Zero(d);
        for (std::size_t y = 0; y < g.out_height; ++y) {
          const float* row = grad + i * gradient.channel_floats() +
                             (y * g.stride_y * gradient.pitch + gradient.border) * kLanes;
          for (std::size_t x = 0; x < g.out_width; ++x)
            sum = hn::Add(sum, hn::Load(d, row + x * g.stride_x * kLanes));
        }
        grad_bias[channel + i] += hn::GetLane(hn::SumOfLanes(d, sum));
      }
    }
  }
}

void spread_gradient(const ConvGeometry& g, const float* grad_out, const float* out,
                     const ConvGradient& layout, float* gradient) {
  const Lanes d;
  for (std::size_t c = 0; c < g.out_channels; ++c) {
    for (std::size_t y = 0; y < g.out_height; ++y) {
      float* row =
          gradient + c * layout.channel_floats() + (y * g.stride_y * layout.pitch + layout.border) * kLanes;
      const std::size_t from = (c * g.out_height + y) * g.out_width * kLanes;
      for (std::size_t x = 0; x < g.out_width; ++x) {
        for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
          const std::size_t at = from + x * kLanes + lane;
          Vector value = hn::Load(d, grad_out + at);
          if (out != nullptr) value = hn::IfThenElseZero(hn::Gt(hn::Load(d, out + at), hn::Zero(d)), value);
          hn::Store(value, d, row + x * g.stride_x * kLanes + lane);
        }
      }
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(conv_backward_weights);
HWY_EXPORT(spread_gradient);

void conv_backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                           float* grad_weights, float* grad_bias) {
  HWY_DYNAMIC_DISPATCH(conv_backward_weights)(g, in, gradient, grad_weights, grad_bias);
}

void spread_gradient(const ConvGeometry& g, const float* grad_out, const float* out,
                     const ConvGradient& layout, float* gradient) {
  HWY_DYNAMIC_DISPATCH(spread_gradient)(g, grad_out, out, layout, gradient);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
