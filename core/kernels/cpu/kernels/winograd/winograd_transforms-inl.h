// Winograd's transforms of F(4, 3) along one axis, and the patches that they read; compiled once per Highway
// target and source.
#if defined(SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_
#undef SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_
#else
#define SWEEP_CORE_KERNELS_CPU_WINOGRAD_TRANSFORMS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {
// Each source has instances of its own, which may be compiled for more than the target.
namespace {

// The points of interpolation are ±a, ±b and infinity, with a = 1/√2 and b = √2, and 0 with stride 1: the
// reciprocals balance the factors. With normal values (cpu_winograd_test.cpp) the largest error of an output
// was 8e-6 of the root mean square, where the direct kernels have 4e-6; of the input's gradient 1.2e-5 and
// 4e-6; of the weights' gradient 7e-6 and 2e-6 to 1.3e-5, by instruction set.
struct Point {
  float value, square;
};
inline constexpr Point kPointA{0.707106781f, 0.5f}, kPointB{1.41421356f, 2.0f};  // each other's reciprocals

// What the patch x0 to x3 gives at a point and its negative: the products of x − q over the other of ±a, ±b.
HWY_INLINE void patch_at(Lanes d, const Point& point, Vector x0, Vector x1, Vector x2, Vector x3,
                         Vector (&f)[2]) {
  const Vector other = hn::Set(d, 1.0f / point.square), p = hn::Set(d, point.value);
  const Vector even = hn::NegMulAdd(other, x1, x3), odd = hn::NegMulAdd(other, x0, x2);
  f[0] = hn::MulAdd(p, odd, even);
  f[1] = hn::NegMulAdd(p, odd, even);
}

// x0 − 2.5 x2 + x4: the product over ±a and ±b.
HWY_INLINE Vector patch_product(Lanes d, Vector x0, Vector x2, Vector x4) {
  return hn::NegMulAdd(hn::Set(d, 2.5f), x2, hn::Add(x0, x4));
}

// The values of the polynomial y at ±a and ±b.
template <std::size_t kAt, std::size_t kSize>
HWY_INLINE void gradient_at_points(Lanes d, const Vector (&y)[4], Vector (&to)[kSize]) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Point& point = i == 0 ? kPointA : kPointB;
    const Vector p = hn::Set(d, point.value), square = hn::Set(d, point.square);
    const Vector even = hn::MulAdd(square, y[2], y[0]), odd = hn::MulAdd(square, y[3], y[1]);
    to[kAt + 2 * i] = hn::MulAdd(p, odd, even);
    to[kAt + 2 * i + 1] = hn::NegMulAdd(p, odd, even);
  }
}

// The transposed: what f[kAt] to f[kAt + 3] add to 4 outputs.
template <std::size_t kAt, std::size_t kSize>
HWY_INLINE void outputs_of_points(Lanes d, const Vector (&f)[kSize], Vector (&y)[4]) {
  const Vector even_a = hn::Add(f[kAt], f[kAt + 1]), odd_a = hn::Sub(f[kAt], f[kAt + 1]);
  const Vector even_b = hn::Add(f[kAt + 2], f[kAt + 3]), odd_b = hn::Sub(f[kAt + 2], f[kAt + 3]);
  const Vector at_a = hn::Mul(hn::Set(d, kPointA.value), odd_a),
               at_b = hn::Mul(hn::Set(d, kPointB.value), odd_b);
  const Vector half = hn::Set(d, 0.5f), two = hn::Set(d, 2.0f);
  y[0] = hn::Add(even_a, even_b);
  y[1] = hn::Add(at_a, at_b);
  y[2] = hn::MulAdd(half, even_a, hn::Mul(two, even_b));
  y[3] = hn::MulAdd(half, at_a, hn::Mul(two, at_b));
}

inline constexpr std::size_t kNoFrequency = static_cast<std::size_t>(-1);

// A transform in groups of one or two frequencies, kGroups, each from x(i): the values of a few groups fit
// into the registers where those of all do not.
template <class Transform>
struct Grouped {
  // Calls use(group), with a constant, for each group.
  template <std::size_t kGroup = 0, class Use>
  static HWY_INLINE void for_groups(Use use) {
    if constexpr (kGroup < Transform::kGroups.size()) {
      use(std::integral_constant<std::size_t, kGroup>());
      for_groups<kGroup + 1>(use);
    }
  }
  template <std::size_t kFrom, std::size_t kTo>
  static HWY_INLINE void run(Lanes d, const Vector (&x)[kFrom], Vector (&f)[kTo]) {
    for_groups([&](auto group) HWY_ATTR {
      Vector two[2];
      Transform::template run_group<group>(
          d, [&](std::size_t i) HWY_ATTR { return x[i]; }, two);
      constexpr auto kIndices = Transform::kGroups[group];
      f[kIndices[0]] = two[0];
      if constexpr (kIndices[1] != kNoFrequency) f[kIndices[1]] = two[1];
    });
  }
};

// Stride 1, F(4, 3): frequencies 0, a, −a, b, −b, infinity.
struct Scheme1 {
  // Bᵀ: the patch that 4 outputs see.
  struct Patch : Grouped<Patch> {
    static constexpr std::size_t kFrom = 6, kTo = 6;
    static constexpr std::array<std::array<std::size_t, 2>, 3> kGroups = {{{1, 2}, {3, 4}, {0, 5}}};
    template <std::size_t kGroup, class X>
    static HWY_INLINE void run_group(Lanes d, X x, Vector (&f)[2]) {
      if constexpr (kGroup == 0) {
        patch_at(d, kPointA, x(1), x(2), x(3), x(4), f);
      } else if constexpr (kGroup == 1) {
        patch_at(d, kPointB, x(1), x(2), x(3), x(4), f);
      } else {
        f[0] = patch_product(d, x(0), x(2), x(4));
        f[1] = patch_product(d, x(1), x(3), x(5));
      }
    }
  };
  // A.
  struct Gradient {
    static constexpr std::size_t kFrom = 4, kTo = 6;
    static HWY_INLINE void run(Lanes d, const Vector (&y)[kFrom], Vector (&f)[kTo]) {
      f[0] = y[0];
      gradient_at_points<1>(d, y, f);
      f[5] = y[3];
    }
  };
  // Aᵀ.
  struct Output {
    static constexpr std::size_t kFrom = 6, kTo = 4;
    static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&y)[kTo]) {
      outputs_of_points<1>(d, f, y);
      y[0] = hn::Add(f[0], y[0]);
      y[3] = hn::Add(y[3], f[5]);
    }
  };
  using GradientPatch = Patch;
  using InputGradient = Output;
  // G: the values of the polynomial w over the products of differences to the other finite points.
  static constexpr float kWeightA = -1.0f / 1.5f, kWeightB = 1.0f / 6.0f;
  struct Weight {
    static constexpr std::size_t kFrom = 3, kTo = 6;
    static HWY_INLINE void run(Lanes d, const Vector (&w)[kFrom], Vector (&f)[kTo]) {
      const Vector weight_a = hn::Set(d, kWeightA), odd_a = hn::Set(d, kWeightA * kPointA.value);
      const Vector weight_b = hn::Set(d, kWeightB), odd_b = hn::Set(d, kWeightB * kPointB.value);
      const Vector even_a = hn::Mul(weight_a, hn::MulAdd(hn::Set(d, kPointA.square), w[2], w[0]));
      const Vector even_b = hn::Mul(weight_b, hn::MulAdd(hn::Set(d, kPointB.square), w[2], w[0]));
      f[0] = w[0];
      f[1] = hn::MulAdd(odd_a, w[1], even_a);
      f[2] = hn::NegMulAdd(odd_a, w[1], even_a);
      f[3] = hn::MulAdd(odd_b, w[1], even_b);
      f[4] = hn::NegMulAdd(odd_b, w[1], even_b);
      f[5] = w[2];
    }
  };
  // Gᵀ.
  struct WeightGradient {
    static constexpr std::size_t kFrom = 6, kTo = 3;
    static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&w)[kTo]) {
      const Vector even_a = hn::Mul(hn::Set(d, kWeightA), hn::Add(f[1], f[2])), odd_a = hn::Sub(f[1], f[2]);
      const Vector even_b = hn::Mul(hn::Set(d, kWeightB), hn::Add(f[3], f[4])), odd_b = hn::Sub(f[3], f[4]);
      w[0] = hn::Add(f[0], hn::Add(even_a, even_b));
      w[1] = hn::MulAdd(hn::Set(d, kWeightA * kPointA.value), odd_a,
                        hn::Mul(hn::Set(d, kWeightB * kPointB.value), odd_b));
      w[2] = hn::MulAdd(hn::Set(d, 0.5f), even_a, hn::MulAdd(hn::Set(d, 2.0f), even_b, f[5]));
    }
  };
  static constexpr std::size_t frequency_of(std::size_t factor) { return factor; }
};

// Stride 2: the sum of a convolution of the even pixels with weights 0 and 2, F(4, 2) at frequencies a, −a,
// b, −b, infinity, and one of the odd pixels with weight 1, which at infinity is none: 9 factors for the 5
// frequencies of the outputs.
struct Scheme2 {
  struct Patch : Grouped<Patch> {
    static constexpr std::size_t kFrom = 9, kTo = 9;
    static constexpr std::array<std::array<std::size_t, 2>, 5> kGroups = {
        {{0, 1}, {2, 3}, {5, 6}, {7, 8}, {4, kNoFrequency}}};
    template <std::size_t kGroup, class X>
    static HWY_INLINE void run_group(Lanes d, X x, Vector (&f)[2]) {
      if constexpr (kGroup == 4) {
        f[0] = patch_product(d, x(0), x(4), x(8));
      } else {
        constexpr std::size_t kFirst = kGroup / 2;
        patch_at(d, kGroup % 2 == 0 ? kPointA : kPointB, x(kFirst), x(kFirst + 2), x(kFirst + 4),
                 x(kFirst + 6), f);
      }
    }
  };
  struct Gradient {
    static constexpr std::size_t kFrom = 4, kTo = 5;
    static HWY_INLINE void run(Lanes d, const Vector (&y)[kFrom], Vector (&f)[kTo]) {
      gradient_at_points<0>(d, y, f);
      f[4] = y[3];
    }
  };
  struct Output {
    static constexpr std::size_t kFrom = 5, kTo = 4;
    static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&y)[kTo]) {
      outputs_of_points<0>(d, f, y);
      y[3] = hn::Add(y[3], f[4]);
    }
  };
  // Output gradients i to i + 4 ...
  struct GradientPatch : Grouped<GradientPatch> {
    static constexpr std::size_t kFrom = 5, kTo = 5;
    static constexpr std::array<std::array<std::size_t, 2>, 3> kGroups = {
        {{0, 1}, {2, 3}, {4, kNoFrequency}}};
    template <std::size_t kGroup, class X>
    static HWY_INLINE void run_group(Lanes d, X x, Vector (&f)[2]) {
      if constexpr (kGroup == 2) {
        f[0] = patch_product(d, x(0), x(2), x(4));
      } else {
        patch_at(d, kGroup == 0 ? kPointA : kPointB, x(0), x(1), x(2), x(3), f);
      }
    }
  };
  // ... give pixels 2i + 1 to 2i + 8: an odd one is weight 1 times its gradient.
  struct InputGradient {
    static constexpr std::size_t kFrom = 9, kTo = 8;
    static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&y)[kTo]) {
      Vector even[4], odd[4];
      outputs_of_points<0>(d, f, even);
      outputs_of_points<5>(d, f, odd);
      even[3] = hn::Add(even[3], f[4]);
      for (std::size_t i = 0; i < 4; ++i) y[2 * i] = odd[i], y[2 * i + 1] = even[i];
    }
  };
  static constexpr float kThird = 1.0f / 3.0f;
  static constexpr float kWeightA = -kThird / kPointA.value, kWeightB = kThird / kPointB.value;
  struct Weight {
    static constexpr std::size_t kFrom = 3, kTo = 9;
    static HWY_INLINE void run(Lanes d, const Vector (&w)[kFrom], Vector (&f)[kTo]) {
      const Vector third = hn::Set(d, kThird), a = hn::Set(d, kWeightA), b = hn::Set(d, kWeightB);
      f[0] = hn::NegMulAdd(third, w[2], hn::Mul(a, w[0]));
      f[1] = hn::NegMulAdd(third, w[2], hn::Neg(hn::Mul(a, w[0])));
      f[2] = hn::MulAdd(third, w[2], hn::Mul(b, w[0]));
      f[3] = hn::MulAdd(third, w[2], hn::Neg(hn::Mul(b, w[0])));
      f[4] = w[2];
      f[5] = hn::Mul(a, w[1]);
      f[6] = hn::Neg(f[5]);
      f[7] = hn::Mul(b, w[1]);
      f[8] = hn::Neg(f[7]);
    }
  };
  struct WeightGradient {
    static constexpr std::size_t kFrom = 9, kTo = 3;
    static HWY_INLINE void run(Lanes d, const Vector (&f)[kFrom], Vector (&w)[kTo]) {
      const Vector a = hn::Set(d, kWeightA), b = hn::Set(d, kWeightB);
      w[0] = hn::MulAdd(a, hn::Sub(f[0], f[1]), hn::Mul(b, hn::Sub(f[2], f[3])));
      w[1] = hn::MulAdd(a, hn::Sub(f[5], f[6]), hn::Mul(b, hn::Sub(f[7], f[8])));
      const Vector sums = hn::Sub(hn::Add(f[2], f[3]), hn::Add(f[0], f[1]));
      w[2] = hn::MulAdd(hn::Set(d, kThird), sums, f[4]);
    }
  };
  static constexpr std::size_t frequency_of(std::size_t factor) { return factor < 5 ? factor : factor - 5; }
};

// Calls run(scheme) with the one for a stride.
template <class Run>
HWY_INLINE void with_scheme(std::size_t stride, Run run) {
  if (stride == 1) {
    run(Scheme1());
  } else {
    run(Scheme2());
  }
}

// Applies a transform along both axes. load(row, column) and store(row, column, value) move the values.
template <class Transform, class Load, class Store>
HWY_INLINE void transform_square(Lanes d, Load load, Store store) {
  constexpr std::size_t kFrom = Transform::kFrom, kTo = Transform::kTo;
  const auto finish_row = [&](std::size_t row, const Vector(&from)[kFrom]) HWY_ATTR {
    Vector to[kTo];
    Transform::run(d, from, to);
    for (std::size_t column = 0; column < kTo; ++column) store(row, column, to[column]);
  };
  if constexpr (std::is_base_of_v<Grouped<Transform>, Transform>) {
    Transform::for_groups([&](auto group) HWY_ATTR {
      constexpr auto kIndices = Transform::kGroups[group];
      Vector first[kFrom], second[kFrom];
      for (std::size_t column = 0; column < kFrom; ++column) {
        Vector two[2];
        Transform::template run_group<group>(
            d, [&](std::size_t row) HWY_ATTR { return load(row, column); }, two);
        first[column] = two[0];
        if constexpr (kIndices[1] != kNoFrequency) second[column] = two[1];
      }
      finish_row(kIndices[0], first);
      if constexpr (kIndices[1] != kNoFrequency) finish_row(kIndices[1], second);
    });
  } else {
    Vector half[kTo][kFrom];
    for (std::size_t column = 0; column < kFrom; ++column) {
      Vector from[kFrom], to[kTo];
      for (std::size_t row = 0; row < kFrom; ++row) from[row] = load(row, column);
      Transform::run(d, from, to);
      for (std::size_t row = 0; row < kTo; ++row) half[row][column] = to[row];
    }
    for (std::size_t row = 0; row < kTo; ++row) finish_row(row, half[row]);
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

// One of `shares` nearly equal shares: what is done beside the products of one frequency.
HWY_INLINE Channels channel_slice(std::size_t channels, std::size_t slices, std::size_t slice) {
  return {part_begin(channels, slices, slice), part_begin(channels, slices, slice + 1)};
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
