// Winograd's transform of the weights, and the rule where the algorithm is used.
#include "core/kernels/cpu/kernels/winograd/winograd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/winograd/winograd.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/kernels/winograd/winograd_plan.h"
#include "core/kernels/cpu/kernels/winograd/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

// Transforms weights [3][3][16], rotated by 180 degrees if `rotated`, to factors [kTo²][16].
// The lanes are input channels.
template <class Transform>
HWY_INLINE void transform_block(const float* weights, bool rotated, float* factors) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    transform_square<Transform>(
        d,
        [&](std::size_t row, std::size_t column) HWY_ATTR {
          const std::size_t tap = rotated ? 8 - row * 3 - column : row * 3 + column;
          return hn::Load(d, weights + tap * kLanes + lane);
        },
        [&](std::size_t row, std::size_t column, Vector value)
            HWY_ATTR { hn::Store(value, d, factors + (row * Transform::kTo + column) * kLanes + lane); });
  }
}

// To matrices of [rows][columns] in tiles of at most kMaxChannelTile rows, [tile][columns][row in tile]. The
// rows are output channels, or, transposed, input channels.
template <class Transform>
HWY_INLINE void transform_all(const ConvGeometry& g, const float* weights, bool transposed,
                              float* transformed) {
  constexpr std::size_t kFactors = Transform::kTo * Transform::kTo;
  const std::size_t rows = transposed ? g.in_channels : g.out_channels;
  const std::size_t columns = transposed ? g.out_channels : g.in_channels;
  const std::size_t tiles = (rows + kMaxChannelTile - 1) / kMaxChannelTile;
  HWY_ALIGN float block[9 * kLanes] = {}, factors[kFactors * kLanes];
  std::size_t offsets[kLanes];
  for (std::size_t out = 0; out < g.out_channels; ++out) {
    for (std::size_t in = 0; in < g.in_channels; in += kLanes) {
      const std::size_t count = HWY_MIN(kLanes, g.in_channels - in);
      for (std::size_t tap = 0; tap < 9; ++tap)
        std::copy_n(weights + (out * 9 + tap) * g.in_channels + in, count, block + tap * kLanes);
      transform_block<Transform>(block, transposed, factors);
      for (std::size_t i = 0, tile = 0; i < count; ++i) {
        const std::size_t row = transposed ? in + i : out, column = transposed ? out : in + i;
        while (row >= part_begin(rows, tiles, tile + 1)) ++tile;
        const std::size_t begin = part_begin(rows, tiles, tile);
        const std::size_t height = part_begin(rows, tiles, tile + 1) - begin;
        offsets[i] = begin * columns + column * height + row - begin;
      }
      for (std::size_t factor = 0; factor < kFactors; ++factor) {
        float* at = transformed + factor * g.in_channels * g.out_channels;
        for (std::size_t i = 0; i < count; ++i) at[offsets[i]] = factors[factor * kLanes + i];
      }
    }
  }
}

}  // namespace

void winograd_transform_weights(const ConvGeometry& g, const float* weights, bool transposed,
                                float* transformed) {
  with_scheme(g.stride_x, [&](auto scheme) HWY_ATTR {
    transform_all<typename decltype(scheme)::Weight>(g, weights, transposed, transformed);
  });
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(winograd_transform_weights);

// The limits are measured: speed relative to the direct kernels on Zen 4 with AVX-512, all three directions
// together, with data in the cache.
//   stride 1, 16 to 16 channels: 1.1 to 2; 64 to 64 channels: up to 3.4
//   stride 1, 8 to 8 channels: 0.7 to 1.3; 4 to 16 channels: 0.9. The gradient of the weights has vectors of
//     16 input channels, which are not full here.
//   stride 1, tiles cover 2.6 times the output (9×9 and 5×5 outputs; four tiles are multiplied at once):
//     0.97 to 1.2
//   stride 1, tiles cover 4 times the output (4×4 outputs): 0.6 to 1.4
//   stride 2, 16 to 32 channels or more: 1.1 to 1.6; 16 to 16 channels: 0.9 to 1.1
//   stride 2, tiles cover more than 1.35 times the output: 0.7 to 1
bool use_winograd(const ConvGeometry& g) {
  const std::size_t stride = g.stride_x;
  const bool can = g.kernel_height == 3 && g.kernel_width == 3 && g.stride_y == stride && stride <= 2 &&
                   g.dilation_y == 1 && g.dilation_x == 1;
  if (!can || g.in_channels < 16 || g.out_channels < (stride == 1 ? 8 : 32)) return false;
  const std::size_t tiles = winograd_tiles(g.out_height) * winograd_tiles(g.out_width);
  const std::size_t covered =
      (tiles + kProductTiles - 1) / kProductTiles * kProductTiles * kWinogradTile * kWinogradTile;
  return 100 * covered <= (stride == 1 ? 260 : 135) * g.out_height * g.out_width;
}

std::size_t winograd_weight_floats(const ConvGeometry& g) {
  return winograd_factors(g.stride_x) * g.in_channels * g.out_channels;
}

std::size_t winograd_scratch_floats(const ConvGeometry& g) {
  const std::size_t frequencies = winograd_frequencies(g.stride_x), factors = winograd_factors(g.stride_x);
  const std::size_t in = winograd_step(g.in_channels), out = winograd_step(g.out_channels);
  return std::max(factors * in + frequencies * out, WinogradWeightsLayout(g).floats);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
