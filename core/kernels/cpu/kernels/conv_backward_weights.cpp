// Gradients of a convolution's weights and bias, and the copy of the output gradient to its padded layout.
//
// The gradient of a weight is a sum over all output positions and all images. A register tile holds the
// sums of some output channels × taps, one vector of images each, and runs over the positions: each
// loaded gradient is used for all taps, each loaded input for all channels. The lanes, which are images,
// are added up once at the end.
#include <algorithm>

#include "core/kernels/cpu/kernels/conv_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/conv_backward_weights.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"
#include "core/kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// The register tile: output channels × taps. A tap is a kernel position of an input channel.
inline constexpr int kChannelTile = kManyRegisters ? 4 : 2;
inline constexpr int kTapTile = kManyRegisters ? 6 : 5;

// Output rows per pass over all taps, so few that their gradient stays in the L1 cache.
std::size_t rows_per_pass(const ConvGradient& gradient, std::size_t channels) {
  constexpr std::size_t kL1Budget = 24 * 1024 / sizeof(float);
  return HWY_MAX(std::size_t{1}, kL1Budget / (channels * gradient.gap_y * gradient.pitch * kLanes));
}

// The operands of a pass: output rows begin … end − 1, for one tile of channels and one vector of images.
struct Rows {
  std::size_t begin, end;
  const float* grad;  // gradient of the tile's first channel
  const float* in;    // first input channel
};

// sums[tap][channel] += Σ over the rows' positions of gradient[channel] · in[tap], for kTaps taps and
// kChannels channels. sums are vectors; offsets [kTaps] are from compute_tap_offsets(). The geometry is a
// copy: a store of a vector may alias anything, so that with a reference the sums would go through memory.
template <int kChannels, int kTaps>
HWY_INLINE void add_weight_tile(ConvGeometry g, ConvGradient gradient, Rows rows, const std::size_t* offsets,
                                float* sums) {
  const Lanes d;
  const std::size_t n = hn::Lanes(d);
  Vector acc[kTaps][kChannels];
  const float* taps[kTaps];
  for (std::size_t k = 0; k < kTaps; ++k) {
    for (std::size_t c = 0; c < kChannels; ++c) acc[k][c] = hn::Load(d, sums + (k * kChannels + c) * n);
  }
  const std::size_t grad_step = gradient.gap_x * kLanes, in_step = g.stride_x * kLanes;
  const std::size_t channel_floats = gradient.channel_floats();
  for (std::size_t y = rows.begin; y < rows.end; ++y) {
    const float* grad_at = rows.grad + (y * gradient.gap_y * gradient.pitch + gradient.border) * kLanes;
    for (std::size_t k = 0; k < kTaps; ++k)
      taps[k] = rows.in + y * g.stride_y * g.in_width * kLanes + offsets[k];
    std::size_t at = 0;
    for (std::size_t x = 0; x < g.out_width; ++x) {
      Vector dy[kChannels];
      for (std::size_t c = 0; c < kChannels; ++c) dy[c] = hn::Load(d, grad_at + c * channel_floats);
      for (std::size_t k = 0; k < kTaps; ++k) {
        const Vector value = hn::Load(d, taps[k] + at);
        for (std::size_t c = 0; c < kChannels; ++c) acc[k][c] = hn::MulAdd(dy[c], value, acc[k][c]);
      }
      grad_at += grad_step;
      at += in_step;
    }
  }
  for (std::size_t k = 0; k < kTaps; ++k) {
    for (std::size_t c = 0; c < kChannels; ++c) hn::Store(acc[k][c], d, sums + (k * kChannels + c) * n);
  }
}

// totals[i] = sum over the lanes of vector i, for groups of as many vectors as a vector has lanes:
// transposing a group makes it one vertical addition of vectors. Both arrays are rounded up to whole groups.
HWY_INLINE void reduce_lanes(Lanes d, const float* sums, std::size_t vectors, float* totals) {
  constexpr std::size_t kSize = hn::MaxLanes(Lanes());
  for (std::size_t i = 0; i < vectors; i += kSize) {
    Vector v[kSize];
    for (std::size_t j = 0; j < kSize; ++j) v[j] = hn::Load(d, sums + (i + j) * hn::Lanes(d));
    transpose_square<static_cast<int>(kSize)>(d, v);
    for (std::size_t width = kSize / 2; width > 0; width /= 2) {
      for (std::size_t j = 0; j < width; ++j) v[j] = hn::Add(v[j], v[j + width]);
    }
    hn::Store(v[0], d, totals + i);
  }
}

// The most taps, of [in_channels][kernel_height][kernel_width], whose sums are kept at a time.
inline constexpr std::size_t kMaxTaps = 256;

// offsets[i]: where tap first + i meets the input for output (0, 0), in floats from the input's first pixel.
// plane, pixel: floats from one channel, and from one pixel, to the next.
HWY_INLINE void compute_tap_offsets(const ConvGeometry& g, std::size_t plane, std::size_t pixel,
                                    std::size_t first, std::size_t count, std::size_t* offsets) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t channel = (first + i) / g.taps(), tap = (first + i) % g.taps();
    const std::size_t row = tap / g.kernel_width * g.dilation_y, column = tap % g.kernel_width * g.dilation_x;
    offsets[i] = channel * plane + (row * g.in_width + column) * pixel;
  }
}

// Adds the gradients of `taps` taps from first_tap on, for kChannels output channels from `channel` on.
template <int kChannels>
void backward_taps(const ConvGeometry& g, const float* in, const ConvGradient& gradient, std::size_t channel,
                   std::size_t first_tap, std::size_t taps, float* grad_weights) {
  const Lanes d;
  const std::size_t n = hn::Lanes(d), vectors = taps * kChannels, pass = rows_per_pass(gradient, kChannels);
  HWY_ALIGN float sums[(kMaxTaps * kChannelTile + kLanes) * kLanes];
  HWY_ALIGN float totals[kMaxTaps * kChannelTile + kLanes];
  std::size_t offsets[kMaxTaps];
  compute_tap_offsets(g, g.in_plane, kLanes, first_tap, taps, offsets);
  std::fill_n(sums, (vectors + n) * n, 0.0f);
  for (std::size_t lane = 0; lane < kLanes; lane += n) {
    for (std::size_t y = 0; y < g.out_height; y += pass) {
      const Rows rows{y, HWY_MIN(g.out_height, y + pass),
                      gradient.data + channel * gradient.channel_floats() + lane, in + lane};
      for_each_run<kTapTile>(taps, [&](std::size_t tap, auto tile_taps) HWY_ATTR {
        add_weight_tile<kChannels, tile_taps()>(g, gradient, rows, offsets + tap, sums + tap * kChannels * n);
      });
    }
  }
  reduce_lanes(d, sums, vectors, totals);
  for (std::size_t i = 0; i < taps; ++i) {
    const std::size_t in_channel = (first_tap + i) / g.taps(), tap = (first_tap + i) % g.taps();
    for (std::size_t c = 0; c < kChannels; ++c) {
      grad_weights[((channel + c) * g.taps() + tap) * g.in_channels + in_channel] +=
          totals[i * kChannels + c];
    }
  }
}

// Sum of a channel's gradient over positions and images.
float channel_gradient_sum(const ConvGeometry& g, const ConvGradient& gradient, std::size_t channel) {
  const Lanes d;
  Vector sum = hn::Zero(d);
  for (std::size_t y = 0; y < g.out_height; ++y) {
    const float* row = gradient.data + channel * gradient.channel_floats() +
                       (y * gradient.gap_y * gradient.pitch + gradient.border) * kLanes;
    for (std::size_t x = 0; x < g.out_width; ++x) {
      for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d))
        sum = hn::Add(sum, hn::Load(d, row + x * gradient.gap_x * kLanes + lane));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void conv_backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                           float* grad_weights) {
  const std::size_t taps = g.in_channels * g.taps();
  for_each_run<kChannelTile>(g.out_channels, [&](std::size_t channel, auto channels) HWY_ATTR {
    for (std::size_t tap = 0; tap < taps; tap += kMaxTaps)
      backward_taps<channels()>(g, in, gradient, channel, tap, HWY_MIN(kMaxTaps, taps - tap), grad_weights);
  });
}

// Sums are over the positions, and then over the images, in the order in which backward_taps() and
// reduce_lanes() add them: the lanes after the images would add zeros.
void conv_backward_weights_of_few(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                                  std::size_t images, float* scratch, float* grad_weights) {
  constexpr int kTaps = kManyRegisters ? 16 : 8;
  constexpr std::size_t kSize = hn::MaxLanes(Lanes());
  const Lanes d;
  if (images == 0) return;
  const std::size_t out = round_up_to_cache_line(g.out_channels),
                    in_step = round_up_to_cache_line(g.in_channels);
  const std::size_t taps = g.in_channels * g.taps();
  // [image][position][output channel], and [image][pixel][input channel].
  const std::size_t positions = g.out_height * g.out_width * out, plane = g.in_height * g.in_width * in_step;
  float* pixels = scratch + images * positions;
  for (std::size_t c = 0; c < out; c += kLanes) {
    for (std::size_t y = 0; y < g.out_height; ++y) {
      const float* row = gradient.data + c * gradient.channel_floats() +
                         (y * gradient.gap_y * gradient.pitch + gradient.border) * kLanes;
      for (std::size_t x = 0; x < g.out_width; ++x)
        transpose_pixel(row + x * gradient.gap_x * kLanes, gradient.channel_floats(),
                        HWY_MIN(kLanes, g.out_channels - c), images, positions,
                        scratch + (y * g.out_width + x) * out + c);
    }
  }
  for (std::size_t c = 0; c < in_step; c += kLanes) {
    for (std::size_t i = 0; i < g.in_height * g.in_width; ++i)
      transpose_pixel(in + c * g.in_plane + i * kLanes, g.in_plane, HWY_MIN(kLanes, g.in_channels - c),
                      images, plane, pixels + i * in_step + c);
  }
  std::size_t offsets[kMaxTaps];
  HWY_ALIGN float sums[kSize][kTaps * kSize];  // of the images that are a multiple of kSize apart
  for (std::size_t begin = 0; begin < taps; begin += kMaxTaps) {
    const std::size_t count = HWY_MIN(kMaxTaps, taps - begin);
    compute_tap_offsets(g, 1, in_step, begin, count, offsets);
    for_each_run<kTaps>(count, [&](std::size_t first, auto run) HWY_ATTR {
      for (std::size_t channel = 0; channel < g.out_channels; channel += kSize) {
        for (std::size_t lane = 0; lane < HWY_MIN(kSize, images); ++lane) {
          Vector acc[run()];
          for (std::size_t k = 0; k < run(); ++k) acc[k] = hn::Zero(d);
          for (std::size_t image = lane; image < images; image += kSize) {
            const float* dy = scratch + image * positions + channel;
            const std::size_t* at = offsets + first;
            for (std::size_t y = 0; y < g.out_height; ++y) {
              const float* x = pixels + image * plane + y * g.stride_y * g.in_width * in_step;
              for (std::size_t i = 0; i < g.out_width; ++i, dy += out, x += g.stride_x * in_step) {
                const Vector value = hn::Load(d, dy);
                for (std::size_t k = 0; k < run(); ++k)
                  acc[k] = hn::MulAdd(value, hn::Set(d, x[at[k]]), acc[k]);
              }
            }
          }
          for (std::size_t k = 0; k < run(); ++k) hn::Store(acc[k], d, sums[lane] + k * kSize);
        }
        for (std::size_t width = kSize / 2; width > 0; width /= 2) {
          for (std::size_t lane = 0; lane < width && lane + width < images; ++lane) {
            for (std::size_t i = 0; i < run() * kSize; ++i) sums[lane][i] += sums[lane + width][i];
          }
        }
        for (std::size_t k = 0; k < run(); ++k) {
          const std::size_t in_channel = (begin + first + k) / g.taps(), tap = (begin + first + k) % g.taps();
          for (std::size_t c = 0; c < HWY_MIN(kSize, g.out_channels - channel); ++c)
            grad_weights[((channel + c) * g.taps() + tap) * g.in_channels + in_channel] +=
                sums[0][k * kSize + c];
        }
      }
    });
  }
}

void conv_backward_bias(const ConvGeometry& g, const ConvGradient& gradient, float* grad_bias) {
  for (std::size_t c = 0; c < g.out_channels; ++c) grad_bias[c] += channel_gradient_sum(g, gradient, c);
}

void pad_gradient(const ConvGeometry& g, const float* grad_out, const float* out, const ConvGradient& layout,
                  float* gradient) {
  const Lanes d;
  for (std::size_t c = 0; c < g.out_channels; ++c) {
    for (std::size_t y = 0; y < g.out_height; ++y) {
      float* row =
          gradient + c * layout.channel_floats() + (y * layout.gap_y * layout.pitch + layout.border) * kLanes;
      const std::size_t from = (c * g.out_height + y) * g.out_width * kLanes;
      for (std::size_t x = 0; x < g.out_width; ++x) {
        for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
          const std::size_t at = from + x * kLanes + lane;
          Vector value = hn::Load(d, grad_out + at);
          if (out != nullptr) value = hn::IfThenElseZero(hn::Gt(hn::Load(d, out + at), hn::Zero(d)), value);
          hn::Store(value, d, row + x * layout.gap_x * kLanes + lane);
        }
      }
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(conv_backward_weights);
SWEEP_EXPORT_KERNEL(conv_backward_weights_of_few);
SWEEP_EXPORT_KERNEL(conv_backward_bias);
SWEEP_EXPORT_KERNEL(pad_gradient);

std::size_t conv_weights_scratch_floats(const ConvGeometry& g) {
  return g.out_height * g.out_width * round_up_to_cache_line(g.out_channels) +
         g.in_height * g.in_width * round_up_to_cache_line(g.in_channels);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
