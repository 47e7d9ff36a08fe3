// The gradient of a convolution's weights by Winograd's algorithm.
//
// The products are summed over tiles and images. In a block the images are lanes, so such a sum would be one
// over lanes for each pair of channels. Therefore the patches are transposed to vectors of 16 input channels
// first. A transformed gradient, one number per output channel, tile and image, is then broadcast and
// multiplied by such vectors, and the sums have the size of the transformed weights:
// [factors][out_channels][in_channels].
//
// For each rectangle of tiles: transform the gradients; then for each 16 input channels transpose the
// strip of the input under the rectangle, transform its patches, and multiply. After the last rectangle
// the sums are transformed back.
#include <algorithm>

#include "core/kernels/cpu/kernels/winograd/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/winograd/winograd_backward_weights.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/kernels/winograd/winograd_image-inl.h"
#include "core/kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

// Output channels of a register tile.
inline constexpr int kSumTile = kManyRegisters ? 16 : 12;
// Floats from one output channel's transformed gradients to those of the next.
inline constexpr std::size_t kRun = kProductTiles * kLanes;

// A rectangle of tiles, from row y, column x of the output on.
struct Rectangle {
  std::size_t y, x, tile_columns, tile_rows;  // y, x: in outputs
  std::size_t tiles() const { return tile_columns * tile_rows; }
  // Position of a tile in outputs, relative to (y, x).
  std::size_t row(std::size_t tile) const { return tile / tile_columns * kWinogradTile; }
  std::size_t column(std::size_t tile) const { return tile % tile_columns * kWinogradTile; }
};

// Transposes the input under the rectangle, `channels` channels from `in` on, to [16
// images][pixels][16 channels].
HWY_INLINE void transpose_strip(const ConvGeometry& g, const WinogradWeightsLayout& layout, const float* in,
                                std::size_t channels, const Rectangle& r, std::size_t images, float* strip) {
  const std::size_t rows = r.tile_rows * kWinogradTile * g.stride_y + 3 - g.stride_y;
  const std::size_t columns = r.tile_columns * kWinogradTile * g.stride_x + 3 - g.stride_x;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t y = r.y * g.stride_y + row, x = r.x * g.stride_x + column;
      const bool inside = y < g.in_height && x < g.in_width;
      transpose_pixel(in + (inside ? y * g.in_width + x : 0) * kLanes, g.in_plane, inside ? channels : 0,
                      images, layout.strip_image, strip + (row * layout.strip_width + column) * kLanes);
    }
  }
}

template <class Transform>
HWY_INLINE void transform_strip(const WinogradWeightsLayout& layout, std::size_t stride, const Rectangle& r,
                                std::size_t images, const float* strip, float* patches) {
  for (std::size_t image = 0; image < images; ++image) {
    for (std::size_t tile = 0; tile < r.tiles(); ++tile) {
      const float* from = strip + image * layout.strip_image +
                          (r.row(tile) * layout.strip_width + r.column(tile)) * stride * kLanes;
      transform_places<Transform>(from, static_cast<std::ptrdiff_t>(layout.strip_width), kLanes,
                                  patches + (tile * kLanes + image) * kLanes, layout.patch_step);
    }
  }
}

// The register tile, at one factor: sums [kChannels][16 input channels] = or += Σ gradient · patch over
// tiles and images.
template <int kChannels>
void multiply_tile(std::size_t tiles, std::size_t images, const float* gradients, const float* patches,
                   bool first, float* sums) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kChannels];
    for (std::size_t c = 0; c < kChannels; ++c) acc[c] = hn::Zero(d);
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      for (std::size_t i = tile * kLanes; i < tile * kLanes + images; ++i) {
        const Vector patch = hn::Load(d, patches + i * kLanes + lane);
        for (std::size_t c = 0; c < kChannels; ++c)
          acc[c] = hn::MulAdd(hn::Set(d, gradients[c * kRun + i]), patch, acc[c]);
      }
    }
    // Adding the sum of each rectangle, instead of going on with the accumulators, rounds less.
    for (std::size_t c = 0; c < kChannels; ++c) {
      float* sum = sums + c * kLanes + lane;
      hn::Store(first ? acc[c] : hn::Add(acc[c], hn::Load(d, sum)), d, sum);
    }
  }
}

// Multiplies at all factors. prefetch(factor) is called before the products of each,
// which leave the memory bus idle.
template <class S, class Prefetch>
HWY_INLINE void multiply(const ConvGeometry& g, const WinogradWeightsLayout& layout, std::size_t tiles,
                         std::size_t images, const float* gradients, const float* patches, bool first,
                         Prefetch prefetch, float* sums) {
  constexpr std::size_t kFactors = S::Patch::kTo, kFrequencies = S::Gradient::kTo;
  for (std::size_t factor = 0; factor < kFactors * kFactors; ++factor) {
    prefetch(factor);
    const std::size_t frequency =
        S::frequency_of(factor / kFactors) * kFrequencies + S::frequency_of(factor % kFactors);
    for_each_run<kSumTile>(g.out_channels, [&](std::size_t channel, auto channels) HWY_ATTR {
      multiply_tile<channels()>(tiles, images, gradients + frequency * layout.gradient_step + channel * kRun,
                                patches + factor * layout.patch_step, first,
                                sums + factor * layout.sum_step + channel * kLanes);
    });
  }
}

// Transforms the sums back and adds them to grad_weights, for `channels` input channels from `in_channel` on.
template <class Transform>
HWY_INLINE void finish(const ConvGeometry& g, const WinogradWeightsLayout& layout, const float* sums,
                       std::size_t in_channel, std::size_t channels, float* grad_weights) {
  HWY_ALIGN float taps[9][kLanes];
  for (std::size_t out = 0; out < g.out_channels; ++out) {
    transform_places<Transform>(sums + out * kLanes, Transform::kFrom,
                                static_cast<std::ptrdiff_t>(layout.sum_step), taps[0], kLanes);
    for (std::size_t tap = 0; tap < 9; ++tap) {
      float* to = grad_weights + (out * 9 + tap) * g.in_channels + in_channel;
      for (std::size_t c = 0; c < channels; ++c) to[c] += taps[tap][c];
    }
  }
}

template <class S>
HWY_INLINE void backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                                 std::size_t images, float* grad_weights, float* scratch) {
  const WinogradWeightsLayout layout(g);
  const Image image = image_of(g, in), gradient_pixels = image_of(gradient);
  const std::size_t columns = winograd_tiles(g.out_width), rows = winograd_tiles(g.out_height);
  const std::size_t across = (columns + layout.tile_columns - 1) / layout.tile_columns;
  const std::size_t rectangles = across * ((rows + layout.tile_rows - 1) / layout.tile_rows);
  const auto rectangle = [&](std::size_t i) {
    const std::size_t row = i / across * layout.tile_rows, column = i % across * layout.tile_columns;
    return Rectangle{row * kWinogradTile, column * kWinogradTile,
                     HWY_MIN(layout.tile_columns, columns - column), HWY_MIN(layout.tile_rows, rows - row)};
  };
  float *gradients = scratch + layout.gradients, *patches = scratch + layout.patches;
  for (std::size_t i = 0; i < rectangles; ++i) {
    const Rectangle r = rectangle(i);
    for (std::size_t tile = 0; tile < r.tiles(); ++tile) {
      transform_patches_at<typename S::Gradient>(
          gradient_pixels, static_cast<std::ptrdiff_t>(r.y + r.row(tile)),
          static_cast<std::ptrdiff_t>(r.x + r.column(tile)), g.out_channels, layout.gradient_step,
          gradients + tile * kLanes);
    }
    for (std::size_t channel = 0; channel < g.in_channels; channel += kLanes) {
      const std::size_t channels = HWY_MIN(kLanes, g.in_channels - channel);
      float* sums = scratch + layout.sums + channel / kLanes * layout.sum_channels;
      transpose_strip(g, layout, in + channel * g.in_plane, channels, r, images, scratch);
      transform_strip<typename S::Patch>(layout, g.stride_x, r, images, scratch, patches);
      const bool last_channels = channel + kLanes >= g.in_channels;
      const std::size_t next_channel = last_channels ? 0 : channel + kLanes;
      const bool is_next = !last_channels || i + 1 < rectangles;
      const Rectangle next = last_channels && is_next ? rectangle(i + 1) : r;
      const auto prefetch = [&](std::size_t slice) HWY_ATTR {
        if (!is_next) return;
        constexpr std::size_t kSlices = S::Patch::kTo * S::Patch::kTo;
        const auto signed_of = [](std::size_t pixels) { return static_cast<std::ptrdiff_t>(pixels); };
        Channels next_channels = channel_slice(HWY_MIN(kLanes, g.in_channels - next_channel), kSlices, slice);
        next_channels.begin += next_channel, next_channels.end += next_channel;
        prefetch_pixels(image, next_channels, signed_of(next.y * g.stride_y), signed_of(next.x * g.stride_x),
                        signed_of(layout.strip_height), signed_of(layout.strip_width));
        if (!last_channels) return;
        prefetch_pixels(gradient_pixels, channel_slice(g.out_channels, kSlices, slice), signed_of(next.y),
                        signed_of(next.x), signed_of(next.tile_rows * kWinogradTile),
                        signed_of(next.tile_columns * kWinogradTile));
      };
      multiply<S>(g, layout, r.tiles(), images, gradients, patches, i == 0, prefetch, sums);
      if (i + 1 == rectangles)
        finish<typename S::WeightGradient>(g, layout, sums, channel, channels, grad_weights);
    }
  }
}

}  // namespace

void winograd_backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                               std::size_t images, float* grad_weights, float* scratch) {
  with_scheme(g.stride_x, [&](auto scheme) HWY_ATTR {
    backward_weights<decltype(scheme)>(g, in, gradient, images, grad_weights, scratch);
  });
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(winograd_backward_weights);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
