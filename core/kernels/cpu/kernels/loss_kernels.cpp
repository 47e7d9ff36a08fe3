#include "core/kernels/cpu/kernels/loss_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/loss_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// After foreach_target.h, so that it is included once per target.
#include "hwy/contrib/math/math-inl.h"

#include "core/kernels/cpu/kernels/class_outputs-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

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
      const Vector power = hn::Exp(d, hn::Sub(hn::Load(d, logits + at), best.value));
      const Vector target = hn::MulAdd(one_hot(d, label, c), at_label, uniform);
      const Vector difference = hn::MulSub(power, inverse, target);
      hn::Store(hn::IfThenElseZero(in_batch, hn::Mul(difference, factor)), d, grad_logits + at);
    }
  }
}

// With t[c] = (1 − s) · w[label] for the label, plus s / classes · w[c]: the loss is Σ t · (log total − x),
// the gradient softmax · Σ t − t.
void weighted_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                            float smoothing, const float* weights, const float* scale, float* loss,
                            std::int32_t* predicted, float* grad_logits) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Vector spread = hn::Set(d, smoothing / static_cast<float>(classes)), kept = hn::Set(d, 1 - smoothing);
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = hn::Load(di, labels + lane);
    const ArgMax best = largest(d, logits + lane, classes);
    const auto target = [&](std::size_t c) {
      return hn::Mul(hn::MulAdd(one_hot(d, label, c), kept, spread), hn::Set(d, weights[c]));
    };
    Vector total = hn::Zero(d), targets = hn::Zero(d), product = hn::Zero(d);
    for (std::size_t c = 0; c < classes; ++c) {
      const Vector x = hn::Sub(hn::Load(d, logits + c * kLanes + lane), best.value), t = target(c);
      total = hn::Add(total, hn::Exp(d, x));
      targets = hn::Add(targets, t);
      product = hn::MulAdd(t, x, product);
    }
    const Vector nll = hn::MulSub(targets, hn::Log(d, total), product);
    // As in softmax_cross_entropy().
    hn::Store(hn::IfThenElse(hn::IsNaN(hn::Sub(best.value, best.value)), hn::NaN(d), nll), d, loss + lane);
    hn::Store(best.index, di, predicted + lane);
    if (grad_logits == nullptr) continue;
    const Vector factor = hn::Load(d, scale + lane), inverse = hn::Div(targets, total);
    const auto in_batch = hn::Ne(factor, hn::Zero(d));
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t at = c * kLanes + lane;
      const Vector power = hn::Exp(d, hn::Sub(hn::Load(d, logits + at), best.value));
      const Vector difference = hn::MulSub(power, inverse, target(c));
      hn::Store(hn::IfThenElseZero(in_batch, hn::Mul(difference, factor)), d, grad_logits + at);
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(softmax_cross_entropy);
SWEEP_EXPORT_KERNEL(weighted_cross_entropy);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
