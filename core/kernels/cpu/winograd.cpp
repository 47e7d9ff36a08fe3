#include "core/kernels/cpu/winograd.h"

#include <algorithm>

#include "core/kernels/cpu/winograd_plan.h"

namespace sweep::cpu {
namespace {

constexpr double kPointA = 0.70710678118654752, kPointB = 1.41421356237309505;

// 3 weights to their 6 factors with stride 1, 9 with stride 2; see winograd_transforms-inl.h. In double,
// because it is done once per step, and the error of a weight would be that of all its products.
void transform(std::size_t stride, double w0, double w1, double w2, double* to) {
  if (stride == 1) {
    const double even_a = (w0 + w2 / 2) / -1.5, odd_a = w1 * kPointA / -1.5;
    const double even_b = (w0 + w2 * 2) / 6, odd_b = w1 * kPointB / 6;
    const double factors[6] = {w0, even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, w2};
    std::copy_n(factors, 6, to);
    return;
  }
  const double a = -1 / (3 * kPointA), b = 1 / (3 * kPointB);
  const double factors[9] = {a * (w0 + kPointA * w2),
                             -a * (w0 - kPointA * w2),
                             b * (w0 + kPointB * w2),
                             -b * (w0 - kPointB * w2),
                             w2,
                             a * w1,
                             -a * w1,
                             b * w1,
                             -b * w1};
  std::copy_n(factors, 9, to);
}

// weight(tap) of one pair of channels to an element of each factor, which are `step` floats apart.
template <class Weight>
void transform_pair(std::size_t stride, Weight weight, std::size_t step, float* to) {
  const std::size_t count = stride == 1 ? 6 : 9;
  double rows[3][9], column[9];
  for (std::size_t y = 0; y < 3; ++y)
    transform(stride, weight(3 * y), weight(3 * y + 1), weight(3 * y + 2), rows[y]);
  for (std::size_t x = 0; x < count; ++x) {
    transform(stride, rows[0][x], rows[1][x], rows[2][x], column);
    for (std::size_t y = 0; y < count; ++y) to[(y * count + x) * step] = static_cast<float>(column[y]);
  }
}

// To [factors][tile of `rows`][columns][row in tile]; weight(row, column, tap).
template <class Weight>
void transform_all(std::size_t stride, std::size_t rows, std::size_t columns, Weight weight,
                   float* transformed) {
  const std::size_t tile = conv_channel_tile(), parts = (rows + tile - 1) / tile;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part_begin(rows, parts, part), end = part_begin(rows, parts, part + 1);
    for (std::size_t column = 0; column < columns; ++column) {
      for (std::size_t row = begin; row < end; ++row) {
        transform_pair(
            stride, [&](std::size_t tap) { return static_cast<double>(weight(row, column, tap)); },
            rows * columns, transformed++);
      }
    }
  }
}

}  // namespace

// Measured on Zen 4 with AVX-512, all three directions together, in the cache. With stride 1 it is 1.1 to 2
// times as fast as the direct kernels with 16 channels to 16, with 64 to 64 up to 3.4 times. With fewer input
// channels than a vector of them the weights' gradient gets slower (0.7 to 1.3 times with 8 to 8, 0.9 with 4
// to 16), and so it does where tiles cover much that is not there: 0.97 to 1.2 times if they cover 2.6 times
// the output (9×9 and 5×5; four tiles are multiplied at once), 0.6 to 1.4 times if 4 (4×4). With stride 2,
// where less is saved, it is 1.1 to 1.6 times with 16 channels to 32 or more, 0.9 to 1.1 with 16 to 16, and
// 0.7 to 1 where tiles cover more than 1.35 times the output.
bool winograd_pays(const ConvGeometry& g) {
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

void winograd_transform_weights(const ConvGeometry& g, const float* weights, float* transformed) {
  transform_all(
      g.stride_x, g.out_channels, g.in_channels,
      [&](std::size_t out, std::size_t in, std::size_t tap) {
        return weights[(out * 9 + tap) * g.in_channels + in];
      },
      transformed);
}

void winograd_transform_weights_transposed(const ConvGeometry& g, const float* weights, float* transformed) {
  transform_all(
      g.stride_x, g.in_channels, g.out_channels,
      [&](std::size_t in, std::size_t out, std::size_t tap) {
        return weights[(out * 9 + 8 - tap) * g.in_channels + in];
      },
      transformed);
}

std::size_t winograd_scratch_floats(const ConvGeometry& g) {
  const std::size_t frequencies = winograd_frequencies(g.stride_x), factors = winograd_factors(g.stride_x);
  const std::size_t in = winograd_step(g.in_channels), out = winograd_step(g.out_channels);
  return std::max(factors * in + frequencies * out, WinogradWeightsLayout(g).floats);
}

}  // namespace sweep::cpu
