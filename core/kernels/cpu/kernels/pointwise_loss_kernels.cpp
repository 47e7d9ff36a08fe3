#include "core/kernels/cpu/kernels/pointwise_loss_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/pointwise_loss_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// After foreach_target.h, so that it is included once per target.
#include "hwy/contrib/math/math-inl.h"

#include "core/kernels/cpu/kernels/class_outputs-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

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
      const auto before = hn::Or(hn::Gt(x, own), hn::And(hn::Eq(x, own), earlier));
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

SWEEP_EXPORT_KERNEL(pointwise_loss);
SWEEP_EXPORT_KERNEL(predict_classes);
SWEEP_EXPORT_KERNEL(rank_labels);
SWEEP_EXPORT_KERNEL(number_errors);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
