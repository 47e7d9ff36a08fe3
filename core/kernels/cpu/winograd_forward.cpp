// Winograd's convolution: forward and the gradient of the input, which is a convolution with other weights.
#include "core/kernels/cpu/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/winograd_forward.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/winograd_plan.h"
#include "core/kernels/cpu/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
namespace {

// A convolution without padding: output (y, x) sees the image from (first_row + y, first_column + x) on.
struct Convolution {
  std::size_t in_channels, out_channels, height, width;  // of the output
  std::ptrdiff_t first_row, first_column;
  const float *weights, *bias;
  bool relu;
  float* out;
};

// Some tiles of the output, row by row.
struct TileRun {
  std::size_t first, count, columns;  // columns: tiles in a row
  std::size_t y(std::size_t tile) const { return (first + tile) / columns * kWinogradTile; }
  std::size_t x(std::size_t tile) const { return (first + tile) % columns * kWinogradTile; }
};

// frequencies [36][in_channels][kProductTiles][16]; beyond the last tile it is repeated.
HWY_INLINE void transform_patches(const Convolution& c, const Image& image, const TileRun& run,
                                  float* frequencies) {
  const Lanes d;
  const std::size_t frequency = winograd_frequency_floats(c.in_channels);
  for (std::size_t tile = 0; tile < kProductTiles; ++tile) {
    const std::size_t from = HWY_MIN(tile, run.count - 1);
    Patch<kWinogradPatch> patch(image, c.first_row + static_cast<std::ptrdiff_t>(run.y(from)),
                                c.first_column + static_cast<std::ptrdiff_t>(run.x(from)));
    for (std::size_t channel = 0; channel < c.in_channels; ++channel) {
      const float* rows[kWinogradPatch];
      patch.locate(channel, rows);
      float* to = frequencies + (channel * kProductTiles + tile) * kLanes;
      for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
        transform_square<InputTransform>(
            d,
            [&](std::size_t row, std::size_t column)
                HWY_ATTR { return hn::Load(d, rows[row] + column * kLanes + lane); },
            [&](std::size_t row, std::size_t column, Vector value)
                HWY_ATTR { hn::Store(value, d, to + (row * kWinogradPatch + column) * frequency + lane); });
      }
    }
  }
}

// One register tile of the products at a frequency: kChannels output channels × kProductTiles tiles.
struct ProductTile {
  template <int kChannels>
  static void run(std::size_t in_channels, const float* patches, const float* weights, float* products) {
    const Lanes d;
    for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
      Vector acc[kChannels][kProductTiles];
      for (int c = 0; c < kChannels; ++c) {
        for (std::size_t p = 0; p < kProductTiles; ++p) acc[c][p] = hn::Zero(d);
      }
      const float* from = patches + lane;
      const float* w = weights;
      for (std::size_t in = 0; in < in_channels; ++in) {
        Vector x[kProductTiles];
        for (std::size_t p = 0; p < kProductTiles; ++p) x[p] = hn::Load(d, from + p * kLanes);
        for (int c = 0; c < kChannels; ++c) {
          const Vector weight = hn::Set(d, w[c]);
          for (std::size_t p = 0; p < kProductTiles; ++p) acc[c][p] = hn::MulAdd(weight, x[p], acc[c][p]);
        }
        from += kProductTiles * kLanes;
        w += kChannels;
      }
      for (std::size_t c = 0; c < kChannels; ++c) {
        for (std::size_t p = 0; p < kProductTiles; ++p)
          hn::Store(acc[c][p], d, products + (c * kProductTiles + p) * kLanes + lane);
      }
    }
  }
};

// Calls ProductTile::run<n>() for the run-time n <= kMaxChannelTile.
template <int kChannels = kMaxChannelTile, class... Args>
HWY_INLINE void run_products(std::size_t n, Args... args) {
  if constexpr (kChannels > 0) {
    if (n == kChannels) return ProductTile::run<kChannels>(args...);
    run_products<kChannels - 1>(n, args...);
  }
}

// Asks for one of 36 shares of what these tiles will write and the next ones will read, while the products
// leave the memory idle. The first columns and rows of a patch belong to patches before it, too.
HWY_INLINE void prefetch_share(const Convolution& c, const Image& image, const TileRun& run,
                               const TileRun& next, std::size_t share) {
  constexpr std::ptrdiff_t kNew = kWinogradTile, kShared = kWinogradPatch - kWinogradTile;
  for (std::size_t tile = 0; tile < next.count; ++tile) {
    prefetch_pixels(image, share_of(c.in_channels, share),
                    c.first_row + static_cast<std::ptrdiff_t>(next.y(tile)) + kShared,
                    c.first_column + static_cast<std::ptrdiff_t>(next.x(tile)) + kShared, kNew, kNew);
  }
  const Image out{
      c.out, c.height * c.width * kLanes,         c.width * kLanes, static_cast<std::ptrdiff_t>(c.height),
      0,     static_cast<std::ptrdiff_t>(c.width)};
  for (std::size_t tile = 0; tile < run.count; ++tile) {
    prefetch_pixels(out, share_of(c.out_channels, share), static_cast<std::ptrdiff_t>(run.y(tile)),
                    static_cast<std::ptrdiff_t>(run.x(tile)), kNew, kNew);
  }
}

// products [36][out_channels][kProductTiles][16] = weights · frequencies, at each of the 36.
HWY_INLINE void multiply(const Convolution& c, const Image& image, const TileRun& run, const TileRun& next,
                         const float* frequencies, float* products) {
  const std::size_t parts = (c.out_channels + kMaxChannelTile - 1) / kMaxChannelTile;
  const float* weights = c.weights;
  for (std::size_t f = 0; f < kWinogradFrequencies; ++f) {
    prefetch_share(c, image, run, next, f);
    const float* patches = frequencies + f * winograd_frequency_floats(c.in_channels);
    float* to = products + f * winograd_frequency_floats(c.out_channels);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t channel = part_begin(c.out_channels, parts, part);
      run_products(part_begin(c.out_channels, parts, part + 1) - channel, c.in_channels, patches,
                   weights + channel * c.in_channels, to + channel * kProductTiles * kLanes);
    }
    weights += c.out_channels * c.in_channels;
  }
}

HWY_INLINE void transform_products(const Convolution& c, const TileRun& run, const float* products) {
  const Lanes d;
  const std::size_t frequency = winograd_frequency_floats(c.out_channels);
  for (std::size_t channel = 0; channel < c.out_channels; ++channel) {
    const Vector bias = hn::Set(d, c.bias == nullptr ? 0.0f : c.bias[channel]);
    for (std::size_t tile = 0; tile < run.count; ++tile) {
      const std::size_t y = run.y(tile), x = run.x(tile);
      const std::size_t rows = HWY_MIN(kWinogradTile, c.height - y),
                        columns = HWY_MIN(kWinogradTile, c.width - x);
      float* to = c.out + ((channel * c.height + y) * c.width + x) * kLanes;
      const float* from = products + (channel * kProductTiles + tile) * kLanes;
      for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
        transform_square<OutputTransform>(
            d,
            [&](std::size_t row, std::size_t column)
                HWY_ATTR { return hn::Load(d, from + (row * kWinogradPatch + column) * frequency + lane); },
            [&](std::size_t row, std::size_t column, Vector value) HWY_ATTR {
              if (row >= rows || column >= columns) return;
              value = hn::Add(value, bias);
              hn::Store(c.relu ? positive_part(d, value) : value, d,
                        to + (row * c.width + column) * kLanes + lane);
            });
      }
    }
  }
}

HWY_INLINE void convolve(const Convolution& c, const Image& image, float* scratch) {
  const std::size_t columns = winograd_tiles(c.width), total = winograd_tiles(c.height) * columns;
  float* products = scratch + kWinogradFrequencies * winograd_frequency_floats(c.in_channels);
  const auto run_from = [&](std::size_t tile) {
    return TileRun{tile, HWY_MIN(kProductTiles, total - tile), columns};
  };
  for (std::size_t first = 0; first < total; first += kProductTiles) {
    const TileRun run = run_from(first);
    transform_patches(c, image, run, scratch);
    multiply(c, image, run, run_from(first + run.count), scratch, products);
    transform_products(c, run, products);
  }
}

}  // namespace

void winograd_forward(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                      bool relu, float* out, float* scratch) {
  convolve({g.in_channels, g.out_channels, g.out_height, g.out_width, 0, 0, transformed, bias, relu, out},
           image_of(g, in), scratch);
}

void winograd_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* transformed,
                             std::size_t pad_y, std::size_t pad_x, std::size_t height, std::size_t width,
                             float* grad_in, float* scratch) {
  // Pixel y of the input without padding meets the outputs from y + pad − 2 to y + pad.
  convolve({g.out_channels, g.in_channels, height, width, static_cast<std::ptrdiff_t>(pad_y) - 2,
            static_cast<std::ptrdiff_t>(pad_x) - 2, transformed, nullptr, false, grad_in},
           image_of(gradient), scratch);
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(winograd_forward);
HWY_EXPORT(winograd_backward_input);

void winograd_forward(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                      bool relu, float* out, float* scratch) {
  HWY_DYNAMIC_DISPATCH(winograd_forward)(g, in, transformed, bias, relu, out, scratch);
}

void winograd_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* transformed,
                             std::size_t pad_y, std::size_t pad_x, std::size_t height, std::size_t width,
                             float* grad_in, float* scratch) {
  HWY_DYNAMIC_DISPATCH(winograd_backward_input)
  (g, gradient, transformed, pad_y, pad_x, height, width, grad_in, scratch);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
