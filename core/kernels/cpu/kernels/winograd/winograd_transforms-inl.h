// Winograd's transforms along one axis, for 4 outputs of a kernel of 3, with strides 1 and 2. Compiled once
// per Highway target and source.
//
// Where the matrices come from (Toom and Cook): as polynomials, weights w (degree 2) times outputs' gradients
// y (degree 3) is a product of degree 5, which is determined by its values at 6 points, one multiplication
// each. G and A evaluate w and y at the points; Bᵀ is, up to the scale in G, the transposed interpolation. A
// convolution is the transpose of that product, hence outputs = Aᵀ [(G w) ⊙ (Bᵀ x)]. With N(x) = Π (x − p)
// over the finite points p:
//
//   row p of Bᵀ: the coefficients of N(x) / (x − p); for infinity those of N(x)
//   row p of G: 1, p, p², divided by N'(p), the product of the differences to the other points; for infinity
//     0, 0, 1
//   row p of A: 1, p, p², p³; for infinity 0, 0, 0, 1
//
// In two dimensions each transform is applied along both axes: transform_square().
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
// Anonymous: each source has its own instances.
namespace {

// The points are ±a, ±b and infinity, with a = 1/√2 and b = √2, and 0 with stride 1: that a and
// b are reciprocals keeps the matrices' entries of similar size, and so the rounding small.
// With normally distributed values (winograd_test.cpp) the largest errors, relative to the root
// mean square of the values, were
//   outputs               8e-6, direct kernels 4e-6
//   input's gradient      1.2e-5, direct kernels 4e-6
//   weights' gradient     7e-6, direct kernels 2e-6 to 1.3e-5, depending on the instruction set
struct Point {
  float value, square;
};
inline constexpr Point kPointA{0.707106781f, 0.5f}, kPointB{1.41421356f, 2.0f};  // each other's reciprocals

// The patch at p and at −p, where ±q are the other points and q² = 1 / p²: x0 to x3 times the coefficients
// of (x ± p)(x² − q²).
HWY_INLINE void patch_at(Lanes d, const Point& point, Vector x0, Vector x1, Vector x2, Vector x3,
                         Vector (&f)[2]) {
  const Vector other = hn::Set(d, 1.0f / point.square), p = hn::Set(d, point.value);
  const Vector even = hn::NegMulAdd(other, x1, x3), odd = hn::NegMulAdd(other, x0, x2);
  f[0] = hn::MulAdd(p, odd, even);
  f[1] = hn::NegMulAdd(p, odd, even);
}

// x0 − 2.5 x2 + x4: the coefficients of (x² − a²)(x² − b²).
HWY_INLINE Vector patch_product(Lanes d, Vector x0, Vector x2, Vector x4) {
  return hn::NegMulAdd(hn::Set(d, 2.5f), x2, hn::Add(x0, x4));
}

// to[kAt …]: the values of the polynomial with coefficients y at a, −a, b and −b.
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

// The transposed: what f[kAt] to f[kAt + 3], the results at a, −a, b and −b, contribute to 4 outputs.
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

// A transform whose results are computed in groups of one or two, kGroups, from inputs x(i). The second
// group member is kNoFrequency if there is only one. A group needs few registers, where the whole
// transform of a square would spill.
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

// Stride 1: F(4, 3), with frequencies 0, a, −a, b, −b, infinity.
struct Scheme1 {
  // Bᵀ, for the patch of 6 pixels that 4 outputs see.
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
  // A, for 4 gradients of outputs.
  struct Gradient {
    static constexpr std::size_t kFrom = 4, kTo = 6;
    static HWY_INLINE void run(Lanes d, const Vector (&y)[kFrom], Vector (&f)[kTo]) {
      f[0] = y[0];
      gradient_at_points<1>(d, y, f);
      f[5] = y[3];
    }
  };
  // Aᵀ, to 4 outputs.
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
  // G. N'(±a) = −1.5, N'(±b) = 6 and N'(0) = 1.
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

// Stride 2: output i is w0 x[2i] + w2 x[2i + 2] + w1 x[2i + 1], the sum of two convolutions: one of the even
// pixels with weights 0 and 2, F(4, 2) at a, −a, b, −b and infinity, and one of the odd pixels with weight 1,
// F(4, 1) at a, −a, b and −b. Those are 9 factors, 0 to 4 and 5 to 8, which add up to the outputs' 5
// frequencies: see frequency_of().
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
  // For the gradient of the input: the gradients of outputs i to i + 4 …
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
  // … give pixels 2i + 1 to 2i + 8. An odd pixel gets weight 1 times one gradient,
  // an even one weights 0 and 2.
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

// Calls run(scheme) with the scheme for a stride of 1 or 2.
template <class Run>
HWY_INLINE void with_scheme(std::size_t stride, Run run) {
  if (stride == 1) {
    run(Scheme1());
  } else {
    run(Scheme2());
  }
}

// Applies a transform along both axes of a square: first to the columns, then to the rows. load(row, column)
// and store(row, column, value) move the values.
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

// The same for squares of kLanes floats at each place. Place (row, column) is (row · from_pitch + column) ·
// from_step after `from`, and result i, row by row, i · to_step after `to`.
template <class Transform>
HWY_INLINE void transform_places(const float* from, std::ptrdiff_t from_pitch, std::ptrdiff_t from_step,
                                 float* to, std::size_t to_step) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    transform_square<Transform>(
        d,
        [&](std::size_t row, std::size_t column) HWY_ATTR {
          const auto y = static_cast<std::ptrdiff_t>(row), x = static_cast<std::ptrdiff_t>(column);
          return hn::Load(d, from + (y * from_pitch + x) * from_step + lane);
        },
        [&](std::size_t row, std::size_t column, Vector value)
            HWY_ATTR { hn::Store(value, d, to + (row * Transform::kTo + column) * to_step + lane); });
  }
}

}  // namespace
}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
