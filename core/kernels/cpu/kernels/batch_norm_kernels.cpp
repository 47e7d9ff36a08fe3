#include "core/kernels/cpu/kernels/layer_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/batch_norm_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

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

void scale_and_shift(const float* in, const ChannelSize& size, float scale, float shift, bool relu,
                     float* out) {
  const Lanes d;
  const Vector factor = hn::Set(d, scale), summand = hn::Set(d, shift);
  const std::size_t row = size.width * kLanes;
  for (std::size_t y = 0; y < size.rows; ++y, in += row, out += size.pitch * kLanes) {
    for (std::size_t i = 0; i < row; i += hn::Lanes(d)) {
      const Vector value = hn::MulAdd(hn::Load(d, in + i), factor, summand);
      hn::Store(relu ? positive_part(d, value) : value, d, out + i);
    }
  }
}

GradientSums gradient_sums(const float* in, const float* out, const ChannelSize& size, float mean,
                           float* grad) {
  const Lanes d;
  const std::size_t n = hn::Lanes(d), row = size.width * kLanes;
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
  for (std::size_t y = 0; y < size.rows; ++y) {
    std::size_t at = 0;
    for (; at + kSums * n <= row; at += kSums * n) {
      for (std::size_t i = 0; i < kSums; ++i) add(at + i * n, i);
    }
    for (; at < row; at += n) add(at, 0);
    in += row, grad += row;
    if (out != nullptr) out += size.pitch * kLanes;
  }
  const auto total = [&](const Vector(&v)[kSums]) HWY_ATTR {
    const Vector sum = hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]));
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  };
  return {total(s), total(p)};
}

void normalization_gradient(const float* in, const float* grad, const ChannelSize& size, std::size_t images,
                            const NormalizationFactors& factors, float* grad_in) {
  const Lanes d;
  const Vector a = hn::Set(d, factors.gradient_factor), b = hn::Set(d, factors.deviation_factor),
               c = hn::Set(d, factors.constant), origin = hn::Set(d, factors.mean);
  const std::size_t row = size.width * kLanes;
  for (std::size_t y = 0; y < size.rows; ++y, in += row, grad += row, grad_in += size.pitch * kLanes) {
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

SWEEP_EXPORT_KERNEL(channel_moments);
SWEEP_EXPORT_KERNEL(scale_and_shift);
SWEEP_EXPORT_KERNEL(gradient_sums);
SWEEP_EXPORT_KERNEL(normalization_gradient);

// The parallel update of Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances", 1979.
Moments combine(const Moments& a, const Moments& b) {
  if (a.count == 0) return b;
  const double count = a.count + b.count, delta = b.mean - a.mean;
  return {count, a.mean + delta * b.count / count,
          a.squares + b.squares + delta * delta * a.count * b.count / count};
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
