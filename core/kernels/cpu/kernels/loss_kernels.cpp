#include "core/kernels/cpu/kernels/loss_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/loss_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// After foreach_target.h, so that it is included once per target.
#include "hwy/contrib/math/math-inl.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

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

void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           float smoothing, const float* scale, float* loss, std::int32_t* predicted,
                           float* grad_logits) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Vector uniform = hn::Set(d, smoothing / static_cast<float>(classes)),
               at_label = hn::Set(d, 1 - smoothing);
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = hn::Load(di, labels + lane);
    const ArgMax best = largest(d, logits + lane, classes);
    // The maximum is subtracted first, because exp overflows above 88.
    Vector total = hn::Zero(d), label_logit = hn::Zero(d), sum = hn::Zero(d);
    for (std::size_t c = 0; c < classes; ++c) {
      const Vector x = hn::Sub(hn::Load(d, logits + c * kLanes + lane), best.value);
      total = hn::Add(total, hn::Exp(d, x));
      label_logit = hn::IfThenElse(hn::Gt(one_hot(d, label, c), hn::Zero(d)), x, label_logit);
      sum = hn::Add(sum, x);
    }
    const Vector log_total = hn::Log(d, total);
    Vector nll = hn::Sub(log_total, label_logit);
    if (smoothing != 0) {  // Σ target · (log total − x)
      const Vector smoothed = hn::NegMulAdd(uniform, sum, hn::Mul(hn::Set(d, smoothing), log_total));
      nll = hn::MulAdd(at_label, nll, smoothed);
    }
    // Highway's Exp and Log do not promise to propagate NaN, and a diverged network has to be visible in its
    // loss. largest − largest is NaN for NaN and infinity.
    nll = hn::IfThenElse(hn::IsNaN(hn::Sub(best.value, best.value)), hn::NaN(d), nll);
    hn::Store(nll, d, loss + lane);
    hn::Store(best.index, di, predicted + lane);
    if (grad_logits == nullptr) continue;
    const Vector factor = hn::Load(d, scale + lane);
    const auto in_batch = hn::Ne(factor, hn::Zero(d));
    const Vector inverse = hn::Div(hn::Set(d, 1.0f), total);
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t at = c * kLanes + lane;
      const Vector probability = hn::Mul(hn::Exp(d, hn::Sub(hn::Load(d, logits + at), best.value)), inverse);
      const Vector target = hn::MulAdd(one_hot(d, label, c), at_label, uniform);
      hn::Store(hn::IfThenElseZero(in_batch, hn::Mul(hn::Sub(probability, target), factor)), d,
                grad_logits + at);
    }
  }
}

void mean_squared_error(const float* outputs, const std::int32_t* labels, std::size_t classes,
                        const float* scale, float* loss, std::int32_t* predicted, float* grad_outputs) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Vector inverse_classes = hn::Set(d, 1.0f / static_cast<float>(classes));
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = hn::Load(di, labels + lane);
    hn::Store(largest(d, outputs + lane, classes).index, di, predicted + lane);
    const Vector factor = hn::Load(d, scale + lane),
                 slope = hn::Mul(hn::Add(inverse_classes, inverse_classes), factor);
    const auto in_batch = hn::Ne(factor, hn::Zero(d));
    Vector sum = hn::Zero(d);
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t at = c * kLanes + lane;
      const Vector error = hn::Sub(hn::Load(d, outputs + at), one_hot(d, label, c));
      sum = hn::MulAdd(error, error, sum);
      if (grad_outputs != nullptr)
        hn::Store(hn::IfThenElseZero(in_batch, hn::Mul(error, slope)), d, grad_outputs + at);
    }
    hn::Store(hn::Mul(sum, inverse_classes), d, loss + lane);
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(softmax_cross_entropy);
HWY_EXPORT(mean_squared_error);

void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           float smoothing, const float* scale, float* loss, std::int32_t* predicted,
                           float* grad_logits) {
  HWY_DYNAMIC_DISPATCH(softmax_cross_entropy)
  (logits, labels, classes, smoothing, scale, loss, predicted, grad_logits);
}

void mean_squared_error(const float* outputs, const std::int32_t* labels, std::size_t classes,
                        const float* scale, float* loss, std::int32_t* predicted, float* grad_outputs) {
  HWY_DYNAMIC_DISPATCH(mean_squared_error)(outputs, labels, classes, scale, loss, predicted, grad_outputs);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
