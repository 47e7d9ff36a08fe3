// Convolution with a kernel 3 or 5 wide, fused with 2×2 max pooling, by Winograd's minimal filtering
// along rows, F(4, 3) and F(4, 5), on one block of 16 images: 6 or 8 products for 4 outputs and a row
// of the kernel, where the direct kernels take 12 or 20. Thread-safe: pure functions of their
// arguments and scratch memory.
//
// Only one axis is transformed, for the sake of rounding: with 8 points along both axes, sums would lose
// two decimal digits. Every 4 pixels of a row, the 6 or 8 pixels from there on are transformed to as
// many "frequencies". At each frequency a convolution along columns is left, whose results are
// transformed back to 4 outputs. With normally distributed values the largest error of an output is
// twice that of the direct kernels.
//
// Transformed rows of the input are kept in a ring buffer of kernel_height + 1 rows, what a row of pooling
// windows needs, so each row is transformed once.
#include <array>
#include <span>

#include "core/kernels/cpu/kernels/winograd/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/winograd/winograd_rows.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
// The largest kernel_height.
inline constexpr std::size_t kMaxKernelRows = 16;

// Inputs of a tile, and products per row of the kernel.
constexpr std::size_t row_frequencies(const ConvGeometry& g) { return g.kernel_width + kWinogradTile - 1; }

// Scratch memory: a ring buffer of transformed rows, as many as a row of pooling windows needs, and the
// products of one product tile at all frequencies, which are transformed back before the next tile. Steps
// are in floats, and such that the arrays of different frequencies are not in the same set of the L1 cache.
struct RowsLayout {
  // A product tile is this many tiles in each of two rows.
  static constexpr std::size_t kTiles = 2, kPositions = 2 * kTiles;

  explicit constexpr RowsLayout(const ConvGeometry& g)
      : tiles((g.out_width / 2 * 2 + kWinogradTile - 1) / kWinogradTile),
        ring(g.kernel_height + 1),
        row(tiles * kLanes),
        channel(ring * row),
        frequency(conflict_free_stride(g.in_channels * ring * tiles) * kLanes),
        product_frequency(conflict_free_stride(g.out_channels * kPositions) * kLanes),
        products(row_frequencies(g) * frequency),
        floats(products + row_frequencies(g) * product_frequency) {}

  std::size_t tiles;               // in a row, as far as pooling windows reach
  std::size_t ring, row, channel;  // [in_channels][ring][tiles][16]
  std::size_t frequency;           // from one frequency to the next
  std::size_t product_frequency;   // [out_channels][rows][tiles][16]
  std::size_t products, floats;
};

namespace {

// Winograd's F(4, kTaps), of 3 or 5 taps: input() is Bᵀ, output() is Aᵀ; winograd_transforms-inl.h says where
// the matrices come from. Frequency i belongs to the point points(kTaps)[i], the last one to infinity.
template <std::size_t kTaps>
struct RowTransform {
  static_assert(kTaps == 3 || kTaps == 5);
  static constexpr std::size_t kFrequencies = kTaps + 3;
  static constexpr bool kHasHalves = kTaps == 5;  // the points ±1/2, before ±1 and ±2
  static constexpr std::size_t kUnitPoint = kHasHalves ? 3 : 1;

  static HWY_INLINE void input(Lanes d, const Vector (&x)[kFrequencies], Vector (&f)[kFrequencies]) {
    if constexpr (kHasHalves) {
      set_pair<1>(d, 0.5f, {4, -5}, x, f);
      set_pair<3>(d, 1, {1, -4.25f}, x, f);
      set_pair<5>(d, 2, {0.25f, -1.25f}, x, f);
      const Vector outer = hn::Set(d, 5.25f);
      f[0] = hn::MulAdd(outer, hn::Sub(x[2], x[4]), hn::Sub(x[6], x[0]));
      f[7] = hn::MulAdd(outer, hn::Sub(x[3], x[5]), hn::Sub(x[7], x[1]));
    } else {
      set_pair<1>(d, 1, {-4}, x, f);
      set_pair<3>(d, 2, {-1}, x, f);
      const Vector four = hn::Set(d, 4.0f), five = hn::Set(d, 5.0f);
      f[0] = hn::MulAdd(four, x[0], hn::NegMulAdd(five, x[2], x[4]));
      f[5] = hn::MulAdd(four, x[1], hn::NegMulAdd(five, x[3], x[5]));
    }
  }

  static HWY_INLINE void output(Lanes d, const Vector (&f)[kFrequencies], Vector (&y)[kWinogradTile]) {
    const auto number = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    constexpr std::size_t kOne = kUnitPoint, kTwo = kUnitPoint + 2;
    const Vector even_1 = hn::Add(f[kOne], f[kOne + 1]), odd_1 = hn::Sub(f[kOne], f[kOne + 1]);
    const Vector even_2 = hn::Add(f[kTwo], f[kTwo + 1]), odd_2 = hn::Sub(f[kTwo], f[kTwo + 1]);
    Vector first = f[0];
    y[1] = hn::MulAdd(number(2), odd_2, odd_1);
    y[2] = hn::MulAdd(number(4), even_2, even_1);
    y[3] = hn::MulAdd(number(8), odd_2, hn::Add(odd_1, f[kFrequencies - 1]));
    if constexpr (kHasHalves) {
      const Vector even = hn::Add(f[1], f[2]), odd = hn::Sub(f[1], f[2]);
      first = hn::Add(first, even);
      y[1] = hn::MulAdd(number(0.5f), odd, y[1]);
      y[2] = hn::MulAdd(number(0.25f), even, y[2]);
      y[3] = hn::MulAdd(number(0.125f), odd, y[3]);
    }
    y[0] = hn::Add(first, hn::Add(even_1, even_2));
  }

 private:
  // Sets the frequencies kAt and kAt + 1, of ±point, which share the even and odd parts. `factors`: the
  // coefficients of the product of x² − q² over the other pairs ±q, except the last, 1.
  template <std::size_t kAt, std::size_t kFactors>
  static HWY_INLINE void set_pair(Lanes d, float point, const float (&factors)[kFactors],
                                  const Vector (&x)[kFrequencies], Vector (&f)[kFrequencies]) {
    Vector even = x[2 * kFactors + 2], odd = x[2 * kFactors + 1];
    for (std::size_t i = kFactors; i-- > 0;) {
      const Vector factor = hn::Set(d, factors[i]);
      even = hn::MulAdd(factor, x[2 * i + 2], even);
      odd = hn::MulAdd(factor, x[2 * i + 1], odd);
    }
    f[kAt] = hn::MulAdd(hn::Set(d, point), odd, even);
    f[kAt + 1] = hn::NegMulAdd(hn::Set(d, point), odd, even);
  }
};

// Transforms a row of the input into the ring buffer. Columns beyond the image read as zero.
template <class Transform>
HWY_INLINE void transform_row(const ConvGeometry& g, const RowsLayout& layout, const float* in,
                              std::size_t row, float* frequencies) {
  const Lanes d;
  for (std::size_t channel = 0; channel < g.in_channels; ++channel) {
    const float* from = in + channel * g.in_plane + row * g.in_width * kLanes;
    float* to = frequencies + channel * layout.channel + row % layout.ring * layout.row;
    for (std::size_t tile = 0; tile < layout.tiles; ++tile) {
      const std::size_t columns = HWY_MIN(Transform::kFrequencies, g.in_width - tile * kWinogradTile);
      for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
        Vector x[Transform::kFrequencies], f[Transform::kFrequencies];
        for (std::size_t i = 0; i < Transform::kFrequencies; ++i) {
          x[i] = i < columns ? hn::Load(d, from + (tile * kWinogradTile + i) * kLanes + lane) : hn::Zero(d);
        }
        Transform::input(d, x, f);
        for (std::size_t i = 0; i < Transform::kFrequencies; ++i)
          hn::Store(f[i], d, to + i * layout.frequency + tile * kLanes + lane);
      }
    }
  }
}

// A register tile of the products at a frequency: kChannels output channels × 2 rows × kTiles tiles. slots
// [kernel_height + 1]: offsets in the ring buffer of the input rows that the two rows of outputs see.
template <int kChannels, std::size_t kTiles>
void multiply_tile(const ConvGeometry& g, const RowsLayout& layout, const std::size_t* slots,
                   const float* frequency, const float* weights, const float* bias, float* products) {
  const Lanes d;
  constexpr std::size_t kPositions = 2 * kTiles;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kChannels][kPositions];
    for (int c = 0; c < kChannels; ++c) {
      const Vector start = bias == nullptr ? hn::Zero(d) : hn::Set(d, bias[c]);
      for (std::size_t p = 0; p < kPositions; ++p) acc[c][p] = start;
    }
    const float* w = weights;
    for (std::size_t in = 0; in < g.in_channels; ++in) {
      const float* rows = frequency + in * layout.channel + lane;
      for (std::size_t row = 0; row < g.kernel_height; ++row) {
        Vector x[kPositions];
        for (std::size_t t = 0; t < kTiles; ++t) {
          x[t] = hn::Load(d, rows + slots[row] + t * kLanes);
          x[kTiles + t] = hn::Load(d, rows + slots[row + 1] + t * kLanes);
        }
        for (int c = 0; c < kChannels; ++c) {
          const Vector weight = hn::Set(d, w[c]);
          for (std::size_t p = 0; p < kPositions; ++p) acc[c][p] = hn::MulAdd(weight, x[p], acc[c][p]);
        }
        w += kChannels;
      }
    }
    for (std::size_t c = 0; c < kChannels; ++c) {
      for (std::size_t p = 0; p < kPositions; ++p)
        hn::Store(acc[c][p], d, products + (c * kPositions + p) * kLanes + lane);
    }
  }
}

// products [frequencies][out_channels][2][kTiles][16] = bias + weights · frequencies, summed over the
// kernel's rows, for tiles from `tile` on.
template <class Transform, std::size_t kTiles>
HWY_INLINE void multiply(const ConvGeometry& g, const RowsLayout& layout, const std::size_t* slots,
                         std::size_t tile, const float* frequencies, const float* weights, const float* bias,
                         float* products) {
  const std::size_t of_channel = g.in_channels * g.kernel_height;
  for (std::size_t f = 0; f < Transform::kFrequencies; ++f) {
    // Column p = 1 of Aᵀ is all ones, so adding the bias at this frequency adds it to all four outputs.
    const float* start = f == Transform::kUnitPoint ? bias : nullptr;
    for_each_run<kMaxChannelTile>(g.out_channels, [&](std::size_t channel, auto channels) HWY_ATTR {
      multiply_tile<channels(), kTiles>(
          g, layout, slots, frequencies + f * layout.frequency + tile * kLanes,
          weights + (f * g.out_channels + channel) * of_channel, start == nullptr ? nullptr : start + channel,
          products + f * layout.product_frequency + channel * 2 * kTiles * kLanes);
    });
  }
}

// Transforms the products of kTiles tiles in two rows back and pools them, for row y of windows.
template <class Transform, std::size_t kTiles>
HWY_INLINE void pool(const ConvGeometry& g, const RowsLayout& layout, std::size_t y, std::size_t tile,
                     const float* products, bool relu, float* out, float* argmax) {
  const Lanes d;
  const std::size_t height = g.out_height / 2, width = g.out_width / 2;
  for (std::size_t channel = 0; channel < g.out_channels; ++channel) {
    for (std::size_t t = 0; t < kTiles; ++t) {
      const std::size_t first = (tile + t) * kWinogradTile / 2;
      const std::size_t at = ((channel * height + y) * width + first) * kLanes;
      for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
        Vector rows[2][kWinogradTile];
        for (std::size_t row = 0; row < 2; ++row) {
          const float* from = products + ((channel * 2 + row) * kTiles + t) * kLanes + lane;
          Vector f[Transform::kFrequencies];
          for (std::size_t i = 0; i < Transform::kFrequencies; ++i)
            f[i] = hn::Load(d, from + i * layout.product_frequency);
          Transform::output(d, f, rows[row]);
        }
        for (std::size_t w = 0; w < HWY_MIN(kWinogradTile / 2, width - first); ++w) {
          const Vector window[4] = {rows[0][2 * w], rows[0][2 * w + 1], rows[1][2 * w], rows[1][2 * w + 1]};
          pool_window(d, window, relu, out + at + w * kLanes + lane, argmax + at + w * kLanes + lane);
        }
      }
    }
  }
}

template <class Transform>
HWY_INLINE void pool_forward(const ConvGeometry& g, const float* in, const float* transformed,
                             const float* bias, bool relu, float* out, float* argmax, float* scratch) {
  const RowsLayout layout(g);
  float* products = scratch + layout.products;
  std::size_t slots[kMaxKernelRows + 1];
  std::size_t next = 0;  // row of the input to transform
  for (std::size_t y = 0; y < g.out_height / 2; ++y) {
    for (; next < 2 * y + layout.ring; ++next) transform_row<Transform>(g, layout, in, next, scratch);
    for (std::size_t row = 0; row < layout.ring; ++row) slots[row] = (2 * y + row) % layout.ring * layout.row;
    std::size_t tile = 0;
    for (; tile + RowsLayout::kTiles <= layout.tiles; tile += RowsLayout::kTiles) {
      multiply<Transform, RowsLayout::kTiles>(g, layout, slots, tile, scratch, transformed, bias, products);
      pool<Transform, RowsLayout::kTiles>(g, layout, y, tile, products, relu, out, argmax);
    }
    if (tile < layout.tiles) {
      multiply<Transform, 1>(g, layout, slots, tile, scratch, transformed, bias, products);
      pool<Transform, 1>(g, layout, y, tile, products, relu, out, argmax);
    }
  }
}

}  // namespace

void winograd_rows_pool_forward(const ConvGeometry& g, const float* in, const float* transformed,
                                const float* bias, bool relu, float* out, float* argmax, float* scratch) {
  const auto run = g.kernel_width == 3 ? pool_forward<RowTransform<3>> : pool_forward<RowTransform<5>>;
  run(g, in, transformed, bias, relu, out, argmax, scratch);
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {
namespace {

using HWY_NAMESPACE::kMaxKernelRows, HWY_NAMESPACE::row_frequencies, HWY_NAMESPACE::RowsLayout;

constexpr std::size_t kMaxTaps = 5, kMaxFrequencies = kMaxTaps + kWinogradTile - 1;

// The finite points: small powers of two, whose powers and most of whose differences are exact floats.
std::span<const double> points(std::size_t taps) {
  static constexpr std::array<double, 5> kPoints3 = {0, 1, -1, 2, -2};
  static constexpr std::array<double, 7> kPoints5 = {0, 0.5, -0.5, 1, -1, 2, -2};
  return taps == 3 ? std::span<const double>(kPoints3) : std::span<const double>(kPoints5);
}

// G, from a row of the kernel to frequencies. In double: it runs only once per step, and the error of a
// transformed weight would be in all of its products.
std::array<double, kMaxFrequencies> transform(std::span<const double> w) {
  const std::span<const double> x = points(w.size());
  std::array<double, kMaxFrequencies> f{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    double value = 0, others = 1;
    for (std::size_t tap = w.size(); tap-- > 0;) value = value * x[i] + w[tap];
    for (std::size_t j = 0; j < x.size(); ++j) others *= j == i ? 1 : x[i] - x[j];
    f[i] = value / others;
  }
  f[x.size()] = w.back();
  return f;
}

}  // namespace

SWEEP_EXPORT_KERNEL(winograd_rows_pool_forward);

bool use_winograd_rows(const ConvGeometry& g) {
  const bool can = (g.kernel_width == 3 || g.kernel_width == 5) && g.kernel_height <= kMaxKernelRows &&
                   g.stride_y == 1 && g.stride_x == 1 && g.dilation_y == 1 && g.dilation_x == 1;
  if (!can) return false;
  // Measured speed relative to the direct kernels, for 3×3 and 5×5: with one channel 0.84 and 1.1, with two
  // 1.15 and 1.5, with 32 1.9 and 2.1 (AVX-512, one core).
  const std::size_t summed = g.in_channels * g.kernel_height;
  if (summed < (g.kernel_width == 3 ? 6 : 5)) return false;
  // At least three quarters of the computed columns have to be used.
  const std::size_t used = g.out_width / 2 * 2, computed = RowsLayout(g).tiles * kWinogradTile;
  return 4 * used >= 3 * computed;
}

std::size_t winograd_rows_weight_floats(const ConvGeometry& g) {
  return row_frequencies(g) * g.out_channels * g.in_channels * g.kernel_height;
}

// Layout: [frequencies][tile of out_channels][in_channels][kernel_height][channel in tile].
void winograd_rows_transform_weights(const ConvGeometry& g, const float* weights, float* transformed) {
  const std::size_t tile = conv_channel_tile(), parts = (g.out_channels + tile - 1) / tile;
  const std::size_t frequency = g.out_channels * g.in_channels * g.kernel_height;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t end = part_begin(g.out_channels, parts, part + 1);
    for (std::size_t in = 0; in < g.in_channels; ++in) {
      for (std::size_t row = 0; row < g.kernel_height; ++row) {
        for (std::size_t out = part_begin(g.out_channels, parts, part); out < end; ++out) {
          std::array<double, kMaxTaps> taps;
          for (std::size_t tap = 0; tap < g.kernel_width; ++tap) {
            taps[tap] = static_cast<double>(
                weights[((out * g.kernel_height + row) * g.kernel_width + tap) * g.in_channels + in]);
          }
          const auto values = transform(std::span(taps).first(g.kernel_width));
          for (std::size_t f = 0; f < row_frequencies(g); ++f)
            transformed[f * frequency] = static_cast<float>(values[f]);
          ++transformed;
        }
      }
    }
  }
}

std::size_t winograd_rows_scratch_floats(const ConvGeometry& g) { return RowsLayout(g).floats; }

}  // namespace sweep::cpu
#endif  // HWY_ONCE
