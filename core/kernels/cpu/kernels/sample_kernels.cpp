#include "core/kernels/cpu/kernels/sample_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/sample_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// After foreach_target.h, so that it is included once per target.
#include "hwy/contrib/math/math-inl.h"

#include "core/kernels/cpu/simd/simd-inl.h"
#include "core/kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// x / 255, correctly rounded: a multiplication by the reciprocal and one Newton correction, several
// times as fast as a division.
HWY_INLINE Vector divide_by_255(Lanes d, Vector x) {
  const Vector reciprocal = hn::Set(d, 1.0f / 255.0f);
  const Vector quotient = hn::Mul(x, reciprocal);
  const Vector remainder = hn::NegMulAdd(hn::Set(d, 255.0f), quotient, x);
  return hn::MulAdd(remainder, reciprocal, quotient);
}

HWY_INLINE void store_pixel(const std::uint8_t* bytes, float* out) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const hn::Rebind<std::uint8_t, Lanes> du8;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto wide = hn::PromoteTo(di, hn::LoadU(du8, bytes + lane));
    hn::Store(divide_by_255(d, hn::ConvertTo(d, wide)), d, out + lane);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Transposes 16 × 16 bytes, from byte `offset` of each row on, in four rounds of perfect shuffles.
HWY_INLINE void transpose_bytes(const std::uint8_t* const (&rows)[kLanes], std::size_t offset,
                                std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d;
  hn::Vec<decltype(d)> a[16], b[16];
  for (std::size_t i = 0; i < 16; ++i) a[i] = hn::LoadU(d, rows[i] + offset);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + 8]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + 8]);
    }
    for (int i = 0; i < 16; ++i) a[i] = b[i];
  }
  for (std::size_t i = 0; i < 16; ++i) hn::Store(a[i], d, out + i * 16);
}
#endif

void load_pixels(const std::uint8_t* const (&images)[kLanes], std::size_t pixels, float* out) {
  std::size_t pixel = 0;
  HWY_ALIGN std::uint8_t square[kLanes * kLanes];
#if HWY_TARGET != HWY_SCALAR
  for (; pixel + 16 <= pixels; pixel += 16) {
    transpose_bytes(images, pixel, square);
    for (std::size_t i = 0; i < 16; ++i) store_pixel(square + i * kLanes, out + (pixel + i) * kLanes);
  }
#endif
  for (; pixel < pixels; ++pixel) {
    for (std::size_t image = 0; image < kLanes; ++image) square[image] = images[image][pixel];
    store_pixel(square, out + pixel * kLanes);
  }
}

void load_floats(const float* const (&samples)[kLanes], std::size_t values, float* out) {
  images_to_lanes(
      values, samples, [](std::size_t value) { return value * kLanes; }, out);
}

void normalize_pixels(std::span<const float> mean, std::span<const float> std, std::size_t plane,
                      float* values) {
  const Lanes d;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const Vector shift = hn::Set(d, mean[c]), scale = hn::Set(d, std[c]);
    float* channel = values + c * plane * kLanes;
    for (std::size_t i = 0; i < plane * kLanes; i += hn::Lanes(d)) {
      hn::Store(hn::Div(hn::Sub(hn::Load(d, channel + i), shift), scale), d, channel + i);
    }
  }
}

// The largest of each image's outputs: its value and its class.
struct ArgMax {
  Vector value;
  hn::Vec<hn::RebindToSigned<Lanes>> index;
};

HWY_INLINE ArgMax largest(Lanes d, const float* outputs, std::size_t classes) {
  const hn::RebindToSigned<Lanes> di;
  ArgMax best{hn::Load(d, outputs), hn::Zero(di)};
  for (std::size_t c = 1; c < classes; ++c) {
    const Vector x = hn::Load(d, outputs + c * kLanes);
    // As in PyTorch, NaN is larger than every number, and the first of equal values is the maximum.
    const auto larger = hn::Or(hn::Gt(x, best.value), hn::AndNot(hn::IsNaN(best.value), hn::IsNaN(x)));
    best.value = hn::IfThenElse(larger, x, best.value);
    best.index =
        hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<std::int32_t>(c)), best.index);
  }
  return best;
}

// 1 where the class is the label, else 0.
HWY_INLINE Vector one_hot(Lanes d, hn::Vec<hn::RebindToSigned<Lanes>> label, std::size_t c) {
  const hn::RebindToSigned<Lanes> di;
  const auto is_label = hn::RebindMask(d, hn::Eq(label, hn::Set(di, static_cast<std::int32_t>(c))));
  return hn::IfThenElseZero(is_label, hn::Set(d, 1.0f));
}

// The target t[c] is (1 − s) for the label, plus s / classes for every class, times weights[c]. The loss is
// Σ t · (log total − x), the gradient softmax · Σ t − t. Without weights Σ t is 1.
void cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes, float smoothing,
                   const float* weights, const float* scale, float* loss, std::int32_t* predicted,
                   float* grad_logits) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Vector spread = hn::Set(d, smoothing / static_cast<float>(classes)), kept = hn::Set(d, 1 - smoothing);
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = hn::Load(di, labels + lane);
    const ArgMax best = largest(d, logits + lane, classes);
    const auto target = [&](std::size_t c) {
      const Vector share = hn::MulAdd(one_hot(d, label, c), kept, spread);
      return weights == nullptr ? share : hn::Mul(share, hn::Set(d, weights[c]));
    };
    // The maximum is subtracted first, because exp overflows above 88.
    const auto shifted = [&](std::size_t c) {
      return hn::Sub(hn::Load(d, logits + c * kLanes + lane), best.value);
    };
    Vector total = hn::Zero(d), targets = hn::Set(d, 1.0f), nll = hn::Zero(d);
    if (weights == nullptr) {
      Vector label_logit = hn::Zero(d), sum = hn::Zero(d);
      for (std::size_t c = 0; c < classes; ++c) {
        const Vector x = shifted(c);
        total = hn::Add(total, hn::Exp(d, x));
        label_logit = hn::IfThenElse(hn::Gt(one_hot(d, label, c), hn::Zero(d)), x, label_logit);
        sum = hn::Add(sum, x);
      }
      const Vector log_total = hn::Log(d, total);
      nll = hn::Sub(log_total, label_logit);
      if (smoothing != 0) {
        const Vector smoothed = hn::NegMulAdd(spread, sum, hn::Mul(hn::Set(d, smoothing), log_total));
        nll = hn::MulAdd(kept, nll, smoothed);
      }
    } else {
      Vector product = hn::Zero(d);
      targets = hn::Zero(d);
      for (std::size_t c = 0; c < classes; ++c) {
        const Vector x = shifted(c), t = target(c);
        total = hn::Add(total, hn::Exp(d, x));
        targets = hn::Add(targets, t);
        product = hn::MulAdd(t, x, product);
      }
      nll = hn::MulSub(targets, hn::Log(d, total), product);
    }
    // Highway's Exp and Log do not promise to propagate NaN, and a diverged network has to be visible in its
    // loss. largest − largest is NaN for NaN and infinity.
    nll = hn::IfThenElse(hn::IsNaN(hn::Sub(best.value, best.value)), hn::NaN(d), nll);
    hn::Store(nll, d, loss + lane);
    hn::Store(best.index, di, predicted + lane);
    if (grad_logits == nullptr) continue;
    const Vector factor = hn::Load(d, scale + lane), inverse = hn::Div(targets, total);
    const auto in_batch = hn::Ne(factor, hn::Zero(d));
    for (std::size_t c = 0; c < classes; ++c) {
      const Vector difference = hn::MulSub(hn::Exp(d, shifted(c)), inverse, target(c));
      const Vector gradient = hn::IfThenElseZero(in_batch, hn::Mul(difference, factor));
      hn::Store(gradient, d, grad_logits + c * kLanes + lane);
    }
  }
}

// 1 / (1 + e^−x) by the exponential of −|x|, which cannot overflow.
HWY_INLINE Vector sigmoid(Lanes d, Vector x) {
  const Vector one = hn::Set(d, 1.0f), small = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const Vector numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), small, one);
  // Highway's Exp does not promise to propagate NaN.
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Div(numerator, hn::Add(one, small)));
}

// The formulas: add() returns sum + loss(x, t), slope() the derivative by x divided by kFactor.
struct SquaredError {
  static constexpr float kFactor = 2;
  HWY_INLINE Vector add(Lanes, Vector sum, Vector x, Vector t) const {
    const Vector error = hn::Sub(x, t);
    return hn::MulAdd(error, error, sum);
  }
  HWY_INLINE Vector slope(Lanes, Vector x, Vector t) const { return hn::Sub(x, t); }
};

struct AbsoluteError {
  static constexpr float kFactor = 1;
  HWY_INLINE Vector add(Lanes, Vector sum, Vector x, Vector t) const {
    return hn::Add(sum, hn::Abs(hn::Sub(x, t)));
  }
  HWY_INLINE Vector slope(Lanes d, Vector x, Vector t) const {
    const Vector error = hn::Sub(x, t);
    return hn::IfThenElseZero(hn::Ne(error, hn::Zero(d)), hn::CopySign(hn::Set(d, 1.0f), error));
  }
};

struct SmoothAbsoluteError {
  static constexpr float kFactor = 1;
  float beta;
  HWY_INLINE Vector add(Lanes d, Vector sum, Vector x, Vector t) const {
    const Vector size = hn::Abs(hn::Sub(x, t)), limit = hn::Set(d, beta);
    const Vector square = hn::Div(hn::Mul(hn::Set(d, 0.5f), hn::Mul(size, size)), limit);
    const Vector line = hn::NegMulAdd(hn::Set(d, 0.5f), limit, size);
    return hn::Add(sum, hn::IfThenElse(hn::Lt(size, limit), square, line));
  }
  HWY_INLINE Vector slope(Lanes d, Vector x, Vector t) const {
    const Vector error = hn::Sub(x, t), limit = hn::Set(d, beta);
    return hn::IfThenElse(hn::Lt(hn::Abs(error), limit), hn::Div(error, limit),
                          AbsoluteError().slope(d, x, t));
  }
};

struct BinaryCrossEntropy {
  static constexpr float kFactor = 1;
  HWY_INLINE Vector add(Lanes d, Vector sum, Vector x, Vector t) const {
    const Vector rest = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x))));
    const Vector loss = hn::Add(hn::NegMulAdd(x, t, hn::Max(x, hn::Zero(d))), rest);
    return hn::Add(sum, hn::IfThenElse(hn::IsNaN(x), x, loss));
  }
  HWY_INLINE Vector slope(Lanes d, Vector x, Vector t) const { return hn::Sub(sigmoid(d, x), t); }
};

template <class Formula>
HWY_INLINE void sum_losses(const Formula& formula, const float* outputs, const BlockTargets& targets,
                           std::size_t count, const float* scale, float* loss, float* grad_outputs) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Vector inverse = hn::Set(d, 1.0f / static_cast<float>(count));
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = targets.labels == nullptr ? hn::Zero(di) : hn::Load(di, targets.labels + lane);
    const auto target = [&](std::size_t c) {
      if (targets.numbers != nullptr) return hn::Load(d, targets.numbers + c * kLanes + lane);
      return count == 1 ? hn::ConvertTo(d, label) : one_hot(d, label, c);
    };
    const Vector factor = hn::Load(d, scale + lane),
                 slope = hn::Mul(hn::Mul(hn::Set(d, Formula::kFactor), inverse), factor);
    const auto in_batch = hn::Ne(factor, hn::Zero(d));
    Vector sum = hn::Zero(d);
    for (std::size_t c = 0; c < count; ++c) {
      const std::size_t at = c * kLanes + lane;
      const Vector x = hn::Load(d, outputs + at), t = target(c);
      sum = formula.add(d, sum, x, t);
      if (grad_outputs != nullptr)
        hn::Store(hn::IfThenElseZero(in_batch, hn::Mul(formula.slope(d, x, t), slope)), d, grad_outputs + at);
    }
    hn::Store(hn::Mul(sum, inverse), d, loss + lane);
  }
}

void pointwise_loss(const LossOptions& options, const float* outputs, const BlockTargets& targets,
                    std::size_t count, const float* scale, float* loss, float* grad_outputs) {
  switch (options.kind) {
    case LossOptions::Kind::kMse:
      return sum_losses(SquaredError(), outputs, targets, count, scale, loss, grad_outputs);
    case LossOptions::Kind::kL1:
      return sum_losses(AbsoluteError(), outputs, targets, count, scale, loss, grad_outputs);
    case LossOptions::Kind::kSmoothL1:
      return sum_losses(SmoothAbsoluteError{static_cast<float>(options.beta)}, outputs, targets, count, scale,
                        loss, grad_outputs);
    case LossOptions::Kind::kBceWithLogits:
      return sum_losses(BinaryCrossEntropy(), outputs, targets, count, scale, loss, grad_outputs);
    case LossOptions::Kind::kCrossEntropy:
      break;  // compares no single outputs
  }
}

void predict_classes(const float* outputs, std::size_t count, std::int32_t* predicted) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    auto index = largest(d, outputs + lane, count).index;
    if (count == 1) {
      const auto above = hn::RebindMask(di, hn::Gt(hn::Load(d, outputs + lane), hn::Zero(d)));
      index = hn::IfThenElseZero(above, hn::Set(di, 1));
    }
    hn::Store(index, di, predicted + lane);
  }
}

void rank_labels(const float* outputs, const std::int32_t* labels, std::size_t count, std::int32_t* ranks) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = hn::Load(di, labels + lane);
    Vector own = hn::Zero(d);
    for (std::size_t c = 0; c < count; ++c)
      own = hn::IfThenElse(hn::Gt(one_hot(d, label, c), hn::Zero(d)),
                           hn::Load(d, outputs + c * kLanes + lane), own);
    auto rank = hn::Zero(di);
    for (std::size_t c = 0; c < count; ++c) {
      const Vector x = hn::Load(d, outputs + c * kLanes + lane);
      const auto earlier = hn::RebindMask(d, hn::Lt(hn::Set(di, static_cast<std::int32_t>(c)), label));
      // Nothing is before NaN by comparison, but a diverged network must not look perfect.
      const auto before = hn::Or(hn::Or(hn::Gt(x, own), hn::IsNaN(own)), hn::And(hn::Eq(x, own), earlier));
      rank = hn::Add(rank, hn::IfThenElseZero(hn::RebindMask(di, before), hn::Set(di, 1)));
    }
    hn::Store(rank, di, ranks + lane);
  }
}

void number_errors(const float* outputs, const float* numbers, std::size_t count, bool probabilities,
                   float* absolute, float* squared) {
  const Lanes d;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    Vector sum = hn::Zero(d), squares = hn::Zero(d);
    for (std::size_t c = 0; c < count; ++c) {
      const Vector x = hn::Load(d, outputs + c * kLanes + lane);
      const Vector error =
          hn::Sub(probabilities ? sigmoid(d, x) : x, hn::Load(d, numbers + c * kLanes + lane));
      sum = hn::Add(sum, hn::Abs(error));
      squares = hn::MulAdd(error, error, squares);
    }
    hn::Store(sum, d, absolute + lane);
    hn::Store(squares, d, squared + lane);
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(load_pixels);
SWEEP_EXPORT_KERNEL(load_floats);
SWEEP_EXPORT_KERNEL(normalize_pixels);
SWEEP_EXPORT_KERNEL(cross_entropy);
SWEEP_EXPORT_KERNEL(pointwise_loss);
SWEEP_EXPORT_KERNEL(predict_classes);
SWEEP_EXPORT_KERNEL(rank_labels);
SWEEP_EXPORT_KERNEL(number_errors);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
