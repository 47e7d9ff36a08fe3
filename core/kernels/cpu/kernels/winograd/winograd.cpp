// Winograd's convolution: the transform of the weights, forward, and the gradient of the input, which is a
// convolution with other weights; and the rule where the algorithm is used.
#include "core/kernels/cpu/kernels/winograd/winograd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/winograd/winograd.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/kernels/winograd/winograd_image-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

// To matrices of [rows][columns] in tiles of at most kMaxChannelTile rows, [tile][columns][row in tile]. The
// rows are output channels, or, transposed, input channels, and then kernels are rotated by 180 degrees.
template <class Transform>
HWY_INLINE void transform_all(const ConvGeometry& g, const float* weights, bool transposed,
                              float* transformed) {
  constexpr std::size_t kFactors = Transform::kTo * Transform::kTo;
  constexpr auto kPlace = static_cast<std::ptrdiff_t>(kLanes);
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
      // The lanes are input channels.
      transform_places<Transform>(transposed ? block + 8 * kLanes : block, 3, transposed ? -kPlace : kPlace,
                                  factors, kLanes);
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

inline constexpr auto kTile = static_cast<std::ptrdiff_t>(kWinogradTile);

// A convolution as both directions and both strides see it. The patch of tile (r, c) begins at row
// first_row + r · patch_step, column first_column + c · patch_step of the image; its results begin at
// row first_out_row + r · out_step, column first_out_column + c · out_step of the output, and those
// outside of the output are dropped.
struct Convolution {
  std::size_t in_channels, out_channels, height, width;  // of the output
  std::ptrdiff_t first_row, first_column, patch_step;
  std::ptrdiff_t first_out_row, first_out_column, out_step;
  const float *weights, *bias;
  bool relu;
  float* out;

  Image output() const {
    return {out, height * width * kLanes,           width * kLanes, static_cast<std::ptrdiff_t>(height),
            0,   static_cast<std::ptrdiff_t>(width)};
  }
};

// Forward: the products at all factors of a frequency are added up to the outputs' frequency.
template <class S>
struct Forward {
  using From = typename S::Patch;
  using To = typename S::Output;
  static constexpr bool sums(std::size_t from, std::size_t to) { return S::frequency_of(from) == to; }
  static constexpr std::size_t factor(std::size_t from, std::size_t /*to*/) { return from; }
};

// Gradient of the input, the transposed: a factor of the input gets the product with
// its frequency of the gradients.
template <class S>
struct Backward {
  using From = typename S::GradientPatch;
  using To = typename S::InputGradient;
  static constexpr bool sums(std::size_t from, std::size_t to) { return S::frequency_of(to) == from; }
  static constexpr std::size_t factor(std::size_t /*from*/, std::size_t to) { return to; }
};

// Consecutive tiles of the output, row by row.
struct TileRun {
  std::size_t first, count, columns;  // columns: tiles in a row
  std::ptrdiff_t row(std::size_t tile) const { return static_cast<std::ptrdiff_t>((first + tile) / columns); }
  std::ptrdiff_t column(std::size_t tile) const {
    return static_cast<std::ptrdiff_t>((first + tile) % columns);
  }
};

// Writes patches [From::kTo²][in_channels][kProductTiles][16]; a run may have fewer tiles.
template <class From>
HWY_INLINE void transform_patches(const Convolution& c, const Image& image, const TileRun& run,
                                  float* patches) {
  for (std::size_t tile = 0; tile < run.count; ++tile) {
    transform_patches_at<From>(image, c.first_row + run.row(tile) * c.patch_step,
                               c.first_column + run.column(tile) * c.patch_step, c.in_channels,
                               winograd_step(c.in_channels), patches + tile * kLanes);
  }
}

// What a product at a frequency sums over: all channels of up to 4 factors (2 along each axis), each
// with its patches and weights.
struct Terms {
  std::size_t count = 0;
  const float *patches[4], *weights[4];
};

// A register tile of the products at a frequency: kChannels output channels × kTiles tiles. `skipped`: floats
// of each term's weights that belong to output channels before these.
template <int kChannels, std::size_t kTiles>
void multiply_tile(std::size_t in_channels, const Terms& terms, std::size_t skipped, float* products) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kChannels][kTiles];
    for (int c = 0; c < kChannels; ++c) {
      for (std::size_t p = 0; p < kTiles; ++p) acc[c][p] = hn::Zero(d);
    }
    for (std::size_t term = 0; term < terms.count; ++term) {
      const float* from = terms.patches[term] + lane;
      const float* w = terms.weights[term] + skipped;
      for (std::size_t in = 0; in < in_channels; ++in) {
        Vector x[kTiles];
        for (std::size_t p = 0; p < kTiles; ++p) x[p] = hn::Load(d, from + p * kLanes);
        for (int c = 0; c < kChannels; ++c) {
          const Vector weight = hn::Set(d, w[c]);
          for (std::size_t p = 0; p < kTiles; ++p) acc[c][p] = hn::MulAdd(weight, x[p], acc[c][p]);
        }
        from += kProductTiles * kLanes;
        w += kChannels;
      }
    }
    for (std::size_t c = 0; c < kChannels; ++c) {
      for (std::size_t p = 0; p < kTiles; ++p)
        hn::Store(acc[c][p], d, products + (c * kProductTiles + p) * kLanes + lane);
    }
  }
}

// Prefetches a slice of what these tiles will write and the next tiles will read, while the
// products leave the memory bus idle. The first rows and columns of a patch are left out, because
// patches before it have read them.
template <class Direction>
HWY_INLINE void prefetch_slice(const Convolution& c, const Image& image, const TileRun& run,
                               const TileRun& next, std::size_t slice) {
  constexpr std::size_t kSlices = Direction::To::kFrom * Direction::To::kFrom;
  const std::ptrdiff_t shared = static_cast<std::ptrdiff_t>(Direction::From::kFrom) - c.patch_step;
  for (std::size_t tile = 0; tile < next.count; ++tile) {
    prefetch_pixels(image, channel_slice(c.in_channels, kSlices, slice),
                    c.first_row + next.row(tile) * c.patch_step + shared,
                    c.first_column + next.column(tile) * c.patch_step + shared, c.patch_step, c.patch_step);
  }
  const Image out = c.output();
  for (std::size_t tile = 0; tile < run.count; ++tile) {
    prefetch_pixels(out, channel_slice(c.out_channels, kSlices, slice),
                    c.first_out_row + run.row(tile) * c.out_step,
                    c.first_out_column + run.column(tile) * c.out_step, c.out_step, c.out_step);
  }
}

// The patches and weights whose products add up to frequency or factor (row, column).
template <class Direction>
HWY_INLINE Terms terms_of(const Convolution& c, std::size_t row, std::size_t column, const float* patches) {
  constexpr std::size_t kFrom = Direction::From::kTo, kTo = Direction::To::kFrom;
  constexpr std::size_t kFactors = HWY_MAX(kFrom, kTo);
  Terms terms;
  for (std::size_t y = 0; y < kFrom; ++y) {
    if (!Direction::sums(y, row)) continue;
    for (std::size_t x = 0; x < kFrom; ++x) {
      if (!Direction::sums(x, column)) continue;
      const std::size_t factor = Direction::factor(y, row) * kFactors + Direction::factor(x, column);
      terms.patches[terms.count] = patches + (y * kFrom + x) * winograd_step(c.in_channels);
      terms.weights[terms.count] = c.weights + factor * c.out_channels * c.in_channels;
      ++terms.count;
    }
  }
  return terms;
}

// products [To::kFrom²][out_channels][kProductTiles][16] = weights · patches.
template <class Direction>
HWY_INLINE void multiply(const Convolution& c, const Image& image, const TileRun& run, const TileRun& next,
                         const float* patches, float* products) {
  constexpr std::size_t kTo = Direction::To::kFrom;
  for (std::size_t i = 0; i < kTo * kTo; ++i) {
    prefetch_slice<Direction>(c, image, run, next, i);
    const Terms terms = terms_of<Direction>(c, i / kTo, i % kTo, patches);
    float* to = products + i * winograd_step(c.out_channels);
    for_each_run<kMaxChannelTile>(c.out_channels, [&](std::size_t channel, auto channels) HWY_ATTR {
      with_count<kProductTiles>(run.count, [&](auto tiles) HWY_ATTR {
        multiply_tile<channels(), tiles()>(c.in_channels, terms, channel * c.in_channels,
                                           to + channel * kProductTiles * kLanes);
      });
    });
  }
}

template <class To>
HWY_INLINE void transform_products(const Convolution& c, const TileRun& run, const float* products) {
  const Lanes d;
  const std::size_t step = winograd_step(c.out_channels);
  for (std::size_t channel = 0; channel < c.out_channels; ++channel) {
    const Vector bias = hn::Set(d, c.bias == nullptr ? 0.0f : c.bias[channel]);
    float* plane = c.out + channel * c.height * c.width * kLanes;
    for (std::size_t tile = 0; tile < run.count; ++tile) {
      // A negative row or column becomes a huge number, which is also outside.
      const auto y = static_cast<std::size_t>(c.first_out_row + run.row(tile) * c.out_step);
      const auto x = static_cast<std::size_t>(c.first_out_column + run.column(tile) * c.out_step);
      const float* from = products + (channel * kProductTiles + tile) * kLanes;
      for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
        transform_square<To>(
            d,
            [&](std::size_t row, std::size_t column)
                HWY_ATTR { return hn::Load(d, from + (row * To::kFrom + column) * step + lane); },
            [&](std::size_t row, std::size_t column, Vector value) HWY_ATTR {
              if (y + row >= c.height || x + column >= c.width) return;
              value = hn::Add(value, bias);
              hn::Store(c.relu ? positive_part(d, value) : value, d,
                        plane + ((y + row) * c.width + x + column) * kLanes + lane);
            });
      }
    }
  }
}

template <class Direction>
HWY_INLINE void convolve(const Convolution& c, const Image& image, float* scratch) {
  using From = typename Direction::From;
  const auto tiles = [&](std::size_t extent, std::ptrdiff_t first) {
    return winograd_tiles(extent - static_cast<std::size_t>(first), static_cast<std::size_t>(c.out_step));
  };
  const std::size_t columns = tiles(c.width, c.first_out_column);
  const std::size_t total = tiles(c.height, c.first_out_row) * columns;
  float* products = scratch + From::kTo * From::kTo * winograd_step(c.in_channels);
  const auto run_from = [&](std::size_t tile) {
    return TileRun{tile, HWY_MIN(kProductTiles, total - tile), columns};
  };
  for (std::size_t first = 0; first < total; first += kProductTiles) {
    const TileRun run = run_from(first);
    transform_patches<From>(c, image, run, scratch);
    multiply<Direction>(c, image, run, run_from(first + run.count), scratch, products);
    transform_products<typename Direction::To>(c, run, products);
  }
}

}  // namespace

void winograd_transform_weights(const ConvGeometry& g, const float* weights, bool transposed,
                                float* transformed) {
  with_scheme(g.stride_x, [&](auto scheme) HWY_ATTR {
    transform_all<typename decltype(scheme)::Weight>(g, weights, transposed, transformed);
  });
}

void winograd_forward(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                      bool relu, float* out, float* scratch) {
  const auto stride = static_cast<std::ptrdiff_t>(g.stride_x);
  const Convolution convolution{.in_channels = g.in_channels,
                                .out_channels = g.out_channels,
                                .height = g.out_height,
                                .width = g.out_width,
                                .first_row = 0,
                                .first_column = 0,
                                .patch_step = kTile * stride,
                                .first_out_row = 0,
                                .first_out_column = 0,
                                .out_step = kTile,
                                .weights = transformed,
                                .bias = bias,
                                .relu = relu,
                                .out = out};
  with_scheme(g.stride_x, [&](auto scheme) HWY_ATTR {
    convolve<Forward<decltype(scheme)>>(convolution, image_of(g, in), scratch);
  });
}

void winograd_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* transformed,
                             float* grad_in, float* scratch) {
  // With stride 1, pixel p of the padded input contributed to outputs p − 2 to p. With stride 2, the
  // gradients of outputs i to i + 4 give pixels 2i + 1 to 2i + 8, so tiles begin at odd pixels: at `pad`, or
  // at the pixel before if that is even.
  const auto stride = static_cast<std::ptrdiff_t>(g.stride_x);
  const auto first = [&](std::size_t pad) {
    const auto p = static_cast<std::ptrdiff_t>(pad);
    return stride == 1 ? p - 2 : (p + 1) / 2 - 1;
  };
  const auto first_out = [&](std::size_t pad) -> std::ptrdiff_t {
    return stride == 1 || pad % 2 == 1 ? 0 : -1;
  };
  const Convolution convolution{.in_channels = g.out_channels,
                                .out_channels = g.in_channels,
                                .height = g.height(),
                                .width = g.width(),
                                .first_row = first(g.pad_y),
                                .first_column = first(g.pad_x),
                                .patch_step = kTile,
                                .first_out_row = first_out(g.pad_y),
                                .first_out_column = first_out(g.pad_x),
                                .out_step = kTile * stride,
                                .weights = transformed,
                                .bias = nullptr,
                                .relu = false,
                                .out = grad_in};
  with_scheme(g.stride_x, [&](auto scheme) HWY_ATTR {
    convolve<Backward<decltype(scheme)>>(convolution, image_of(gradient), scratch);
  });
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(winograd_transform_weights);
SWEEP_EXPORT_KERNEL(winograd_forward);
SWEEP_EXPORT_KERNEL(winograd_backward_input);

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
