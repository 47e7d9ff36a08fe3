// Winograd's transforms of F(4, 3) along one axis, and the patches that they read; compiled once per Highway
// target and source.
#if defined(SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_
#endif

#include <algorithm>

#include "core/kernels/cpu/simd-inl.h"
#include "core/kernels/cpu/winograd.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
// Each source has instances of its own, which may be compiled for more than the target.
namespace {

// The points of interpolation are 0, ±a, ±b and infinity, with a = 1/√2 and b = √2.
inline constexpr float kPointA = 0.707106781f, kPointB = 1.41421356f;
// Their weights 1/N: N of a point is the product of its differences to the other finite ones.
inline constexpr float kWeightA = -1.0f / 1.5f, kWeightB = 1.0f / 6.0f;

// Bᵀ: 6 inputs to 6 frequencies.
struct InputTransform {
  static constexpr std::size_t kFrom = 6, kTo = 6;
  static HWY_INLINE void run(Lanes d, const Vector (&x)[kFrom], Vector (&f)[kTo]) {
    const Vector a = hn::Set(d, kPointA), b = hn::Set(d, kPointB);
    const Vector half = hn::Set(d, 0.5f), two = hn::Set(d, 2.0f), sum = hn::Set(d, 2.5f);
    const Vector even_a = hn::NegMulAdd(two, x[2], x[4]), odd_a = hn::NegMulAdd(two, x[1], x[3]);
    const Vector even_b = hn::NegMulAdd(half, x[2], x[4]), odd_b = hn::NegMulAdd(half, x[1], x[3]);
    f[0] = hn::NegMulAdd(sum, x[2], hn::Add(x[0], x[4]));
    f[1] = hn::MulAdd(a, odd_a, even_a);
    f[2] = hn::NegMulAdd(a, odd_a, even_a);
    f[3] = hn::MulAdd(b, odd_b, even_b);
    f[4] = hn::NegMulAdd(b, odd_b, even_b);
    f[5] = hn::NegMulAdd(sum, x[3], hn::Add(x[1], x[5]));
  }
};

// A: 4 gradients to 6 frequencies.
struct GradientTransform {
  static constexpr std::size_t kFrom = 4, kTo = 6;
  static HWY_INLINE void run(Lanes d, const Vector (&y)[kFrom], Vector (&f)[kTo]) {
    const Vector a = hn::Set(d, kPointA), b = hn::Set(d, kPointB);
    const Vector half = hn::Set(d, 0.5f), two = hn::Set(d, 2.0f);
    const Vector even_a = hn::MulAdd(half, y[2], y[0]), odd_a = hn::MulAdd(half, y[3], y[1]);
    const Vector even_b = hn::MulAdd(two, y[2], y[0]), odd_b = hn::MulAdd(two, y[3], y[1]);
    f[0] = y[0];
    f[1] = hn::MulAdd(a, odd_a, even_a);
    f[2] = hn::NegMulAdd(a, odd_a, even_a);
    f[3] = hn::MulAdd(b, odd_b, even_b);
    f[4] = hn::NegMulAdd(b, odd_b, even_b);
    f[5] = y[3];
  }
};

// Aᵀ: 6 frequencies to 4 outputs.
struct OutputTransform {
  static constexpr std::size_t kFrom = 6, kTo = 4;
  static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&y)[kTo]) {
    const Vector even_a = hn::Add(f[1], f[2]), odd_a = hn::Sub(f[1], f[2]);
    const Vector even_b = hn::Add(f[3], f[4]), odd_b = hn::Sub(f[3], f[4]);
    const Vector at_a = hn::Mul(hn::Set(d, kPointA), odd_a), at_b = hn::Mul(hn::Set(d, kPointB), odd_b);
    const Vector half = hn::Set(d, 0.5f), two = hn::Set(d, 2.0f);
    y[0] = hn::Add(f[0], hn::Add(even_a, even_b));
    y[1] = hn::Add(at_a, at_b);
    y[2] = hn::MulAdd(half, even_a, hn::Mul(two, even_b));
    y[3] = hn::MulAdd(half, at_a, hn::MulAdd(two, at_b, f[5]));
  }
};

// Gᵀ: 6 frequencies to the gradients of 3 weights.
struct WeightGradientTransform {
  static constexpr std::size_t kFrom = 6, kTo = 3;
  static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&w)[kTo]) {
    const Vector weight_a = hn::Set(d, kWeightA), weight_b = hn::Set(d, kWeightB);
    const Vector even_a = hn::Mul(weight_a, hn::Add(f[1], f[2])), odd_a = hn::Sub(f[1], f[2]);
    const Vector even_b = hn::Mul(weight_b, hn::Add(f[3], f[4])), odd_b = hn::Sub(f[3], f[4]);
    w[0] = hn::Add(f[0], hn::Add(even_a, even_b));
    w[1] = hn::MulAdd(hn::Set(d, kWeightA * kPointA), odd_a, hn::Mul(hn::Set(d, kWeightB * kPointB), odd_b));
    w[2] = hn::MulAdd(hn::Set(d, 0.5f), even_a, hn::MulAdd(hn::Set(d, 2.0f), even_b, f[5]));
  }
};

// Applies a transform along both axes. load(row, column) and store(row, column, value) move the values.
template <class Transform, class Load, class Store>
HWY_INLINE void transform_square(Lanes d, Load load, Store store) {
  constexpr std::size_t kFrom = Transform::kFrom, kTo = Transform::kTo;
  Vector half[kFrom][kTo];  // [column][row]
  for (std::size_t column = 0; column < kFrom; ++column) {
    Vector from[kFrom];
    for (std::size_t row = 0; row < kFrom; ++row) from[row] = load(row, column);
    Transform::run(d, from, half[column]);
  }
  for (std::size_t row = 0; row < kTo; ++row) {
    Vector from[kFrom], to[kTo];
    for (std::size_t column = 0; column < kFrom; ++column) from[column] = half[column][row];
    Transform::run(d, from, to);
    for (std::size_t column = 0; column < kTo; ++column) store(row, column, to[column]);
  }
}

// Channels of rows of pixels of kLanes floats; beyond `rows` rows and outside [first_column, end_column)
// there are zeros.
struct Image {
  const float* data;         // pixel (0, 0) of the first channel
  std::size_t plane, pitch;  // in floats
  std::ptrdiff_t rows, first_column, end_column;
};

HWY_INLINE Image image_of(const ConvGeometry& g, const float* in) {
  return {in,
          g.in_plane,
          g.in_width * kLanes,
          static_cast<std::ptrdiff_t>(g.in_height),
          0,
          static_cast<std::ptrdiff_t>(g.in_width)};
}

HWY_INLINE Image image_of(const ConvGradient& gradient) {
  const auto border = static_cast<std::ptrdiff_t>(gradient.border);
  return {gradient.data + gradient.border * kLanes,
          gradient.channel_floats(),
          gradient.pitch * kLanes,
          static_cast<std::ptrdiff_t>(gradient.rows),
          -border,
          static_cast<std::ptrdiff_t>(gradient.pitch) - border};
}

struct Channels {
  std::size_t begin, end;
};

// One of 36 nearly equal shares: what is done beside the products of one frequency.
HWY_INLINE Channels share_of(std::size_t channels, std::size_t share) {
  return {part_begin(channels, kWinogradFrequencies, share),
          part_begin(channels, kWinogradFrequencies, share + 1)};
}

// Asks for height × width pixels from (y, x) on, as far as the image has them, of some channels. Without it
// the transforms wait for memory: they read and write more places at once than the processor foresees.
HWY_INLINE void prefetch_pixels(const Image& image, const Channels& channels, std::ptrdiff_t y,
                                std::ptrdiff_t x, std::ptrdiff_t height, std::ptrdiff_t width) {
  const std::ptrdiff_t end_row = HWY_MIN(y + height, image.rows),
                       end_column = HWY_MIN(x + width, image.end_column);
  for (std::size_t channel = channels.begin; channel < channels.end; ++channel) {
    for (std::ptrdiff_t row = HWY_MAX(y, 0); row < end_row; ++row) {
      const float* line = image.data + channel * image.plane + row * static_cast<std::ptrdiff_t>(image.pitch);
      for (std::ptrdiff_t column = HWY_MAX(x, image.first_column); column < end_column; ++column)
        __builtin_prefetch(line + column * static_cast<std::ptrdiff_t>(kLanes), 0, 2);  // to the L2 cache
    }
  }
}

// kSize × kSize pixels from (y, x) of an image on. What lies inside of the image is read where it is, where
// only rows are missing, too.
template <std::size_t kSize>
class Patch {
 public:
  Patch(const Image& image, std::ptrdiff_t y, std::ptrdiff_t x) : image_(image), x_(x) {
    constexpr auto kCount = static_cast<std::ptrdiff_t>(kSize);
    for (std::ptrdiff_t row = 0; row < kCount; ++row) {
      const bool inside = y + row >= 0 && y + row < image.rows;
      offsets_[row] = inside ? (y + row) * static_cast<std::ptrdiff_t>(image.pitch) : kMissing;
    }
    begin_ = std::clamp<std::ptrdiff_t>(image.first_column - x, 0, kCount);
    end_ = std::clamp<std::ptrdiff_t>(image.end_column - x, begin_, kCount);
    whole_ = begin_ == 0 && end_ == kCount;
  }

  // Where the rows of a channel are, until the next call.
  HWY_INLINE void locate(std::size_t channel, const float* (&rows)[kSize]) {
    const float* first = image_.data + channel * image_.plane + x_ * static_cast<std::ptrdiff_t>(kLanes);
    for (std::size_t row = 0; row < kSize; ++row) {
      rows[row] = zeros_;
      if (offsets_[row] == kMissing) continue;
      if (whole_) {
        rows[row] = first + offsets_[row];
        continue;
      }
      constexpr auto kPixel = static_cast<std::ptrdiff_t>(kLanes);
      std::copy(first + offsets_[row] + begin_ * kPixel, first + offsets_[row] + end_ * kPixel,
                copies_[row] + begin_ * kPixel);
      rows[row] = copies_[row];
    }
  }

 private:
  static constexpr std::ptrdiff_t kMissing = -1;
  const Image& image_;
  std::ptrdiff_t x_, offsets_[kSize], begin_, end_;
  bool whole_;
  HWY_ALIGN float zeros_[kSize * kLanes] = {};
  HWY_ALIGN float copies_[kSize][kSize * kLanes] = {};
};

}  // namespace
}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
