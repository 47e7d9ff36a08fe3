#include "core/kernels/cpu/loss_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/loss_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

// After the target loop has begun, or it would be compiled for one target only.
#include "hwy/contrib/math/math-inl.h"

#include "core/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           const float* scale, float* loss, std::int32_t* predicted, float* grad_logits) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  for (std::size_t lane = 0; lane < kLanes; lane += hn::Lanes(d)) {
    const auto label = hn::Load(di, labels + lane);
    Vector peak = hn::Load(d, logits + lane);
    Vector at_label = peak;
    auto best = hn::Zero(di);
    for (std::size_t c = 1; c < classes; ++c) {
      const auto index = hn::Set(di, static_cast<std::int32_t>(c));
      const Vector x = hn::Load(d, logits + c * kLanes + lane);
      // As PyTorch: a NaN is the largest of all, and the first of equals wins.
      const auto larger = hn::Or(hn::Gt(x, peak), hn::AndNot(hn::IsNaN(peak), hn::IsNaN(x)));
      peak = hn::IfThenElse(larger, x, peak);
      best = hn::IfThenElse(hn::RebindMask(di, larger), index, best);
      at_label = hn::IfThenElse(hn::RebindMask(d, hn::Eq(label, index)), x, at_label);
    }
    // The peak is subtracted first, because exp overflows above 88.
    Vector total = hn::Zero(d);
    for (std::size_t c = 0; c < classes; ++c) {
      total = hn::Add(total, hn::Exp(d, hn::Sub(hn::Load(d, logits + c * kLanes + lane), peak)));
    }
    Vector nats = hn::Sub(hn::Log(d, total), hn::Sub(at_label, peak));
    // Highway's Exp and Log say nothing about NaN; a diverged network must show as one.
    nats = hn::IfThenElse(hn::IsNaN(hn::Sub(peak, peak)), hn::NaN(d), nats);
    hn::Store(nats, d, loss + lane);
    hn::Store(best, di, predicted + lane);
    if (grad_logits == nullptr) continue;
    const Vector factor = hn::Load(d, scale + lane);
    const auto kept = hn::Ne(factor, hn::Zero(d));
    const Vector inverse = hn::Div(hn::Set(d, 1.0f), total);
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t at = c * kLanes + lane;
      Vector probability = hn::Mul(hn::Exp(d, hn::Sub(hn::Load(d, logits + at), peak)), inverse);
      const auto is_label = hn::RebindMask(d, hn::Eq(label, hn::Set(di, static_cast<std::int32_t>(c))));
      probability = hn::Sub(probability, hn::IfThenElseZero(is_label, hn::Set(d, 1.0f)));
      hn::Store(hn::IfThenElseZero(kept, hn::Mul(probability, factor)), d, grad_logits + at);
    }
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(softmax_cross_entropy);

void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           const float* scale, float* loss, std::int32_t* predicted, float* grad_logits) {
  HWY_DYNAMIC_DISPATCH(softmax_cross_entropy)(logits, labels, classes, scale, loss, predicted, grad_logits);
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
