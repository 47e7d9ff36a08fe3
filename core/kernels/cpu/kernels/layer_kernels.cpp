// Activation functions, linear layers and batch normalization.
#include "core/kernels/cpu/kernels/layer_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/layer_kernels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must come before highway.h
// clang-format off: math-inl.h has to be included again for every target, after foreach_target.h
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
// clang-format on

#include "core/kernels/cpu/simd/transpose-inl.h"

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

// Accumulators of a tile; each loaded vector of x is used for as many broadcast weights.
inline constexpr std::size_t kLinearTile = kManyRegisters ? 16 : 8;
// Weights of wide layers do not fit into the caches, and processors read ahead only to the end of a page. So
// kernels prefetch the weights of this many inputs ahead, which are one page.
inline constexpr std::size_t kInputsAhead = 64;
// Panels, each in another page, that a tile of the input's gradient reads before it stores its sums.
inline constexpr std::size_t kPanelsAtOnce = 4;

// y[o] = Σ weight[o] · x over all inputs, for kLinearTile outputs from the first of `panel` on. Stores
// `count` of them: the others are the last panel's padding.
HWY_INLINE void forward_tile(const float* panel, const float* bias, std::size_t in, bool relu,
                             std::size_t count, const float* x, float* y) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kLinearTile];
    for (std::size_t o = 0; o < kLinearTile; ++o)
      acc[o] = bias != nullptr && o < count ? hn::Set(d, bias[o]) : hn::Zero(d);
    const float* w = panel;
    const float* x_at = x + lane;
    for (std::size_t i = 0; i < in; ++i) {
      if (kManyRegisters && lane == 0) hwy::Prefetch(w + kInputsAhead * kLanes);
      const Vector value = hn::Load(d, x_at);
      for (std::size_t o = 0; o < kLinearTile; ++o) acc[o] = hn::MulAdd(hn::Set(d, w[o]), value, acc[o]);
      w += kLanes;
      x_at += kLanes;
    }
    for (std::size_t o = 0; o < kLinearTile && o < count; ++o)
      hn::Store(relu ? positive_part(d, acc[o]) : acc[o], d, y + o * kLanes + lane);
  }
}

void linear_forward(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                    LinearBlocks blocks) {
  for (std::size_t o = 0; o < out; o += kLinearTile) {
    const float* panel = panels + o / kLanes * in * kLanes + o % kLanes;
    for (const LinearBlock& block : blocks) {
      forward_tile(panel, bias == nullptr ? nullptr : bias + o, in, relu, out - o, block.x,
                   block.y + o * kLanes);
    }
  }
}

// Calls use(first, std::integral_constant<std::size_t, n>) for tiles of n inputs.
template <class Use>
HWY_INLINE void for_each_input_tile(std::size_t in, const Use& use) {
  std::size_t i = 0;
  for (; i + kLinearTile <= in; i += kLinearTile) use(i, std::integral_constant<std::size_t, kLinearTile>());
  for (; i + 4 <= in; i += 4) use(i, std::integral_constant<std::size_t, 4>());
  for (; i < in; ++i) use(i, std::integral_constant<std::size_t, 1>());
}

// to[o][i] = panel[i][o] for the outputs of a panel and kInputs inputs.
template <std::size_t kInputs>
HWY_INLINE void transpose_panel(const float* panel, float* to) {
  const Lanes d;
  constexpr std::size_t kSize = hn::MaxLanes(Lanes());
  if constexpr (kInputs % kSize == 0) {
    for (std::size_t i = 0; i < kInputs; i += kSize) {
      for (std::size_t o = 0; o < kLanes; o += kSize) {
        Vector v[kSize];
        for (std::size_t j = 0; j < kSize; ++j) v[j] = hn::Load(d, panel + (i + j) * kLanes + o);
        transpose_square<static_cast<int>(kSize)>(d, v);
        for (std::size_t j = 0; j < kSize; ++j) hn::Store(v[j], d, to + (o + j) * kInputs + i);
      }
    }
  } else {
    for (std::size_t i = 0; i < kInputs; ++i) {
      for (std::size_t o = 0; o < kLanes; ++o) to[o * kInputs + i] = panel[i * kLanes + o];
    }
  }
}

// Adds Σ weights[o][i] · grad_y[o] over `outputs` outputs to grad_x[i], for kInputs inputs; `begins`: to 0.
template <std::size_t kInputs>
HWY_INLINE void add_input_gradients(const float* weights, std::size_t outputs, bool begins,
                                    const float* grad_y, float* grad_x) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector acc[kInputs];
    for (std::size_t i = 0; i < kInputs; ++i)
      acc[i] = begins ? hn::Zero(d) : hn::Load(d, grad_x + i * kLanes + lane);
    for (std::size_t o = 0; o < outputs; ++o) {
      const Vector value = hn::Load(d, grad_y + o * kLanes + lane);
      for (std::size_t i = 0; i < kInputs; ++i)
        acc[i] = hn::MulAdd(hn::Set(d, weights[o * kInputs + i]), value, acc[i]);
    }
    for (std::size_t i = 0; i < kInputs; ++i) hn::Store(acc[i], d, grad_x + i * kLanes + lane);
  }
}

void linear_backward_input(const float* panels, std::size_t in, std::size_t out, LinearBlocks blocks) {
  for (std::size_t o = 0; o < out; o += kPanelsAtOnce * kLanes) {
    const std::size_t outputs = HWY_MIN(kPanelsAtOnce * kLanes, out - o);
    for_each_input_tile(in, [&](std::size_t first, auto inputs) HWY_ATTR {
      HWY_ALIGN float weights[kPanelsAtOnce * kLanes * inputs()];  // [output][input]
      for (std::size_t panel = 0; panel < outputs; panel += kLanes)
        transpose_panel<inputs()>(panels + (o + panel) * in + first * kLanes, weights + panel * inputs());
      for (const LinearBlock& block : blocks) {
        add_input_gradients<inputs()>(weights, outputs, o == 0, block.grad_y + o * kLanes,
                                      block.grad_x + first * kLanes);
      }
    });
  }
}

// grad[i][o] += Σ x[i][image] · grad_y[o][image] over the images, for a panel's outputs and kInputs inputs
// from `first` on; or =, unless `adds`. `transposed` is grad_y of the panel as [block][image][kLanes
// outputs].
template <std::size_t kInputs>
HWY_INLINE void weight_tile(const float* transposed, std::size_t first, LinearBlocks blocks, bool adds,
                            float* grad) {
  const Lanes d;
  for (std::size_t o = 0; o < kLanes; o += hn::Lanes(d)) {
    Vector acc[kInputs];
    for (std::size_t i = 0; i < kInputs; ++i)
      acc[i] = adds ? hn::Load(d, grad + i * kLanes + o) : hn::Zero(d);
    for (std::size_t i = 0; i < kInputs && o == 0 && adds; ++i)
      hwy::Prefetch(grad + (i + kInputsAhead) * kLanes);
    const float* dy = transposed + o;
    for (const LinearBlock& block : blocks) {
      const float* x = block.x + first * kLanes;
      // All lanes after the images add the same zero, so adding one of them is enough.
      for (std::size_t image = 0; image < HWY_MIN(block.images + 1, kLanes); ++image) {
        const Vector value = hn::Load(d, dy + image * kLanes);
        for (std::size_t i = 0; i < kInputs; ++i)
          acc[i] = hn::MulAdd(hn::Set(d, x[i * kLanes + image]), value, acc[i]);
      }
      dy += kLanes * kLanes;
    }
    for (std::size_t i = 0; i < kInputs; ++i) hn::Store(acc[i], d, grad + i * kLanes + o);
  }
}

void linear_backward_weights(std::size_t in, std::size_t out, LinearBlocks blocks, bool adds,
                             float* grad_panels, float* grad_bias) {
  HWY_ALIGN float transposed[kMaxBlocksAtOnce * kLanes * kLanes];
  for (std::size_t first = 0; first < out; first += kLanes) {
    const std::size_t count = HWY_MIN(kLanes, out - first);
    float* to = transposed;
    for (const LinearBlock& block : blocks) {
      for (std::size_t o = 0; o < kLanes; ++o) {
        const float* row = block.grad_y + (first + o) * kLanes;
        float sum = 0;
        for (std::size_t image = 0; image < kLanes; ++image) {
          to[image * kLanes + o] = o < count ? row[image] : 0.0f;
          sum += to[image * kLanes + o];
        }
        if (o >= count || grad_bias == nullptr) continue;
        float& total = grad_bias[first + o];
        total = adds || to > transposed ? total + sum : sum;
      }
      to += kLanes * kLanes;
    }
    for_each_input_tile(in, [&](std::size_t input, auto inputs) HWY_ATTR {
      weight_tile<inputs()>(transposed, input, blocks, adds, grad_panels + first * in + input * kLanes);
    });
  }
}

// Independent accumulators, which hide the latency of additions.
inline constexpr std::size_t kSums = 4;

HWY_INLINE float first_lanes_sum(Lanes d, Vector values, std::size_t lanes) {
  return hn::GetLane(hn::SumOfLanes(d, hn::IfThenElseZero(hn::FirstN(d, lanes), values)));
}

Moments channel_moments(const float* in, std::size_t pixels, std::size_t images) {
  const Lanes d;
  const std::size_t n = hn::Lanes(d);
  // Shifts the values by one of them: Σx² − (Σx)²/n would lose all digits if the mean
  // is large compared with the deviation.
  const float pilot = in[0];
  const Vector origin = hn::Set(d, pilot);
  double sum = 0, squares = 0;
  for (std::size_t lane = 0; lane < images; lane += n) {
    Vector s[kSums], q[kSums];
    for (std::size_t i = 0; i < kSums; ++i) s[i] = q[i] = hn::Zero(d);
    std::size_t pixel = 0;
    const auto add = [&](std::size_t i) HWY_ATTR {
      const Vector x = hn::Sub(hn::Load(d, in + (pixel + i) * kLanes + lane), origin);
      s[i] = hn::Add(s[i], x);
      q[i] = hn::MulAdd(x, x, q[i]);
    };
    for (; pixel + kSums <= pixels; pixel += kSums) {
      for (std::size_t i = 0; i < kSums; ++i) add(i);
    }
    for (; pixel < pixels; ++pixel) add(0);
    const std::size_t lanes = HWY_MIN(n, images - lane);
    sum += first_lanes_sum(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3])), lanes);
    squares += first_lanes_sum(d, hn::Add(hn::Add(q[0], q[1]), hn::Add(q[2], q[3])), lanes);
  }
  const double count = static_cast<double>(pixels) * static_cast<double>(images);
  return {count, pilot + sum / count, std::max(0.0, squares - sum * sum / count)};
}

void scale_and_shift(const float* in, const ImageLayout& layout, float scale, float shift, bool relu,
                     float* out) {
  const Lanes d;
  const Vector factor = hn::Set(d, scale), summand = hn::Set(d, shift);
  const std::size_t row = layout.width * kLanes;
  for (std::size_t y = 0; y < layout.rows; ++y, in += row, out += layout.pitch * kLanes) {
    for (std::size_t i = 0; i < row; i += hn::Lanes(d)) {
      const Vector value = hn::MulAdd(hn::Load(d, in + i), factor, summand);
      hn::Store(relu ? positive_part(d, value) : value, d, out + i);
    }
  }
}

GradientSums gradient_sums(const float* in, const float* out, const ImageLayout& layout, float mean,
                           float* grad) {
  const Lanes d;
  const std::size_t n = hn::Lanes(d), row = layout.width * kLanes;
  const Vector origin = hn::Set(d, mean);
  Vector s[kSums], p[kSums];
  for (std::size_t i = 0; i < kSums; ++i) s[i] = p[i] = hn::Zero(d);
  const auto add = [&](std::size_t at, std::size_t i) HWY_ATTR {
    Vector g = hn::Load(d, grad + at);
    if (out != nullptr) {
      g = hn::IfThenElseZero(hn::Gt(hn::Load(d, out + at), hn::Zero(d)), g);
      hn::Store(g, d, grad + at);
    }
    s[i] = hn::Add(s[i], g);
    p[i] = hn::MulAdd(g, hn::Sub(hn::Load(d, in + at), origin), p[i]);
  };
  for (std::size_t y = 0; y < layout.rows; ++y) {
    std::size_t at = 0;
    for (; at + kSums * n <= row; at += kSums * n) {
      for (std::size_t i = 0; i < kSums; ++i) add(at + i * n, i);
    }
    for (; at < row; at += n) add(at, 0);
    in += row, grad += row;
    if (out != nullptr) out += layout.pitch * kLanes;
  }
  const auto total = [&](const Vector(&v)[kSums]) HWY_ATTR {
    const Vector sum = hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]));
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  };
  return {total(s), total(p)};
}

void normalization_gradient(const float* in, const float* grad, const ImageLayout& layout, std::size_t images,
                            const NormalizationFactors& factors, float* grad_in) {
  const Lanes d;
  const Vector a = hn::Set(d, factors.gradient_factor), b = hn::Set(d, factors.deviation_factor),
               c = hn::Set(d, factors.constant), origin = hn::Set(d, factors.mean);
  const std::size_t row = layout.width * kLanes;
  for (std::size_t y = 0; y < layout.rows; ++y, in += row, grad += row, grad_in += layout.pitch * kLanes) {
    for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
      const auto counts = hn::FirstN(d, images > lane ? images - lane : 0);
      for (std::size_t i = lane; i < row; i += kLanes) {
        const Vector deviation = hn::Sub(hn::Load(d, in + i), origin);
        const Vector value = hn::NegMulAdd(b, deviation, hn::MulSub(a, hn::Load(d, grad + i), c));
        hn::Store(hn::IfThenElseZero(counts, value), d, grad_in + i);
      }
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(activation_forward);
SWEEP_EXPORT_KERNEL(activation_backward);
SWEEP_EXPORT_KERNEL(sum_values);
SWEEP_EXPORT_KERNEL(linear_forward);
SWEEP_EXPORT_KERNEL(linear_backward_input);
SWEEP_EXPORT_KERNEL(linear_backward_weights);
SWEEP_EXPORT_KERNEL(channel_moments);
SWEEP_EXPORT_KERNEL(scale_and_shift);
SWEEP_EXPORT_KERNEL(gradient_sums);
SWEEP_EXPORT_KERNEL(normalization_gradient);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
