#include "core/kernels/cpu/kernels/layer_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/activation_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: math-inl.h has to be included again for every target, after foreach_target.h
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
// clang-format on

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

HWY_INLINE Vector sigmoid(Lanes d, Vector x) {
  // exp(-|x|) cannot overflow; the two branches of the textbook formula.
  const Vector one = hn::Set(d, 1.0f), e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const Vector small = hn::Div(e, hn::Add(one, e));  // sigmoid(-|x|)
  const Vector result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), small, hn::Sub(one, small));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

HWY_INLINE Vector tanh(Lanes d, Vector x) {
  const Vector result = hn::Tanh(d, x);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// The error function as a quotient of polynomials in x², within 4e-7 of the true value; coefficients of
// Eigen's generic_fast_erf_float (MPL 2), which clamps to where the function has reached ±1.
HWY_INLINE Vector erf(Lanes d, Vector x) {
  const Vector clamped = hn::Max(hn::Min(x, hn::Set(d, 4.0f)), hn::Set(d, -4.0f));
  const Vector square = hn::Mul(clamped, clamped);
  Vector p = hn::Set(d, -2.72614225801306e-10f);
  for (const float c : {2.77068142495902e-08f, -2.10102402082508e-06f, -5.69250639462346e-05f,
                        -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f}) {
    p = hn::MulAdd(p, square, hn::Set(d, c));
  }
  Vector q = hn::Set(d, -1.45660718464996e-05f);
  for (const float c :
       {-2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f, -1.42647390514189e-02f}) {
    q = hn::MulAdd(q, square, hn::Set(d, c));
  }
  return hn::Div(hn::Mul(clamped, p), q);
}

// Φ(x), the normal distribution: gelu(x) = x · Φ(x).
HWY_INLINE Vector normal_cdf(Lanes d, Vector x) {
  const Vector half = hn::Set(d, 0.5f);
  return hn::MulAdd(half, erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
}

void activation_forward(Activation activation, float coefficient, const float* in, std::size_t floats,
                        float* out) {
  const Lanes d;
  const auto map = [&](auto f) HWY_ATTR {
    for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) hn::Store(f(hn::Load(d, in + i)), d, out + i);
  };
  switch (activation) {
    case Activation::kRelu:
      return map([d](Vector x) HWY_ATTR { return positive_part(d, x); });
    case Activation::kLeakyRelu:
      return map([d, s = hn::Set(d, coefficient)](Vector x)
                     HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, s)); });
    case Activation::kTanh:
      return map([d](Vector x) HWY_ATTR { return tanh(d, x); });
    case Activation::kSigmoid:
      return map([d](Vector x) HWY_ATTR { return sigmoid(d, x); });
    case Activation::kGelu:
      return map([d](Vector x) HWY_ATTR { return hn::Mul(x, normal_cdf(d, x)); });
    case Activation::kSilu:
      return map([d](Vector x) HWY_ATTR { return hn::Mul(x, sigmoid(d, x)); });
  }
}

void activation_backward(Activation activation, float coefficient, const float* grad_out, const float* in,
                         const float* out, std::size_t floats, float* grad_in) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0f);
  // Both the function's argument and its value are at hand; each derivative takes the cheaper.
  const auto map = [&](const float* from, auto f) HWY_ATTR {
    for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
      hn::Store(f(hn::Load(d, grad_out + i), hn::Load(d, from + i)), d, grad_in + i);
    }
  };
  switch (activation) {
    case Activation::kRelu:
      return map(out,
                 [d](Vector g, Vector y) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), g); });
    case Activation::kLeakyRelu:
      return map(in, [d, s = hn::Set(d, coefficient)](Vector g, Vector x)
                         HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), g, hn::Mul(g, s)); });
    case Activation::kTanh:
      return map(out, [one](Vector g, Vector y) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(y, y, one)); });
    case Activation::kSigmoid:
      return map(out, [one](Vector g, Vector y) HWY_ATTR { return hn::Mul(g, hn::Mul(y, hn::Sub(one, y))); });
    case Activation::kGelu:
      return map(in, [d](Vector g, Vector x) HWY_ATTR {
        const Vector density =
            hn::Mul(hn::Set(d, 0.39894228f), hn::Exp(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(x, x))));
        return hn::Mul(g, hn::MulAdd(x, density, normal_cdf(d, x)));
      });
    case Activation::kSilu:
      return map(in, [d, one](Vector g, Vector x) HWY_ATTR {
        const Vector s = sigmoid(d, x);
        return hn::Mul(g, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one)));
      });
  }
}

void sum_values(const float* a, const float* b, std::size_t floats, bool relu, float* out) {
  const Lanes d;
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    const Vector sum = hn::Add(hn::Load(d, a + i), hn::Load(d, b + i));
    hn::Store(relu ? positive_part(d, sum) : sum, d, out + i);
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(activation_forward);
SWEEP_EXPORT_KERNEL(activation_backward);
SWEEP_EXPORT_KERNEL(sum_values);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
