#include "core/kernels/cpu/kernels/optimizer_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/optimizer_kernels.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

// One of the two ways to memory.
HWY_INLINE void store(Lanes d, Vector value, bool past_caches, float* to) {
  if (past_caches) {
    hn::Stream(value, d, to);
  } else {
    hn::Store(value, d, to);
  }
}

// Before other cores may read what was written past the caches.
HWY_INLINE void finish_stores(bool past_caches) {
  if (past_caches) hwy::FlushStream();
}

void add_arrays(std::span<const std::int16_t> order, const float* arrays, std::size_t stride,
                std::size_t floats, bool past_caches, float* sum) {
  constexpr std::size_t kPiece = 256,
                        kStack = 16;  // floats at a time, so that the stack stays in the L1 cache
  const Lanes d;
  HWY_ALIGN float sums[kStack][kPiece];
  const float* stack[kStack];
  for (std::size_t begin = 0; begin < floats; begin += kPiece) {
    const std::size_t count = HWY_MIN(kPiece, floats - begin);
    std::size_t depth = 0;
    for (std::size_t step = 0; step < order.size(); ++step) {
      if (order[step] != kAddArrays) {
        const float* array = arrays + static_cast<std::size_t>(order[step]) * stride + begin;
        // The pieces are too short for the processor to see where they go on.
        for (std::size_t i = 0; i < count; i += kLanes) hwy::Prefetch(array + kPiece + i);
        stack[depth++] = array;
        continue;
      }
      --depth;
      const float *left = stack[depth - 1], *right = stack[depth];
      const bool last = step + 1 == order.size();
      float* to = last ? sum + begin : sums[depth - 1];
      for (std::size_t i = 0; i < count; i += hn::Lanes(d))
        store(d, hn::Add(hn::Load(d, left + i), hn::Load(d, right + i)), last && past_caches, to + i);
      stack[depth - 1] = to;
    }
    if (order.size() > 1) continue;
    for (std::size_t i = 0; i < count; i += hn::Lanes(d))
      store(d, hn::Load(d, stack[0] + i), past_caches, sum + begin + i);
  }
  finish_stores(past_caches);
}

void step_with(const SgdOptions& options, const OptimizerStep& step) {
  const auto [learning_rate, number, floats, gradient, state, past_caches, parameters] = step;
  float* momentum = state[0];
  const bool first_step = number == 1;
  const Lanes d;
  const Vector decay = hn::Set(d, static_cast<float>(options.weight_decay));
  const Vector keep = hn::Set(d, static_cast<float>(options.momentum));
  const Vector take = hn::Set(d, static_cast<float>(1 - options.dampening));
  const Vector rate = hn::Set(d, static_cast<float>(-learning_rate));
  const bool has_momentum = options.momentum != 0;
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    Vector weight = hn::Load(d, parameters + i);
    Vector g = hn::MulAdd(decay, weight, hn::Load(d, gradient + i));
    if (has_momentum) {
      const Vector buffer = first_step ? g : hn::MulAdd(keep, hn::Load(d, momentum + i), hn::Mul(take, g));
      hn::Store(buffer, d, momentum + i);
      g = options.nesterov ? hn::MulAdd(keep, buffer, g) : buffer;
    }
    store(d, hn::MulAdd(rate, g, weight), past_caches, parameters + i);
  }
  finish_stores(past_caches);
}

void step_with(const AdamOptions& options, const OptimizerStep& step) {
  const auto [learning_rate, number, floats, gradient, state, past_caches, parameters] = step;
  float *mean = state[0], *square = state[1];
  const Lanes d;
  // Scalars in double and then rounded, as PyTorch's single-tensor implementation has them.
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(number));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(number));
  const Vector decay = hn::Set(d, options.decoupled ? 0.0f : static_cast<float>(options.weight_decay));
  const Vector shrink =
      hn::Set(d, options.decoupled ? static_cast<float>(1 - learning_rate * options.weight_decay) : 1.0f);
  const Vector take1 = hn::Set(d, static_cast<float>(1 - options.beta1));
  const Vector keep2 = hn::Set(d, static_cast<float>(options.beta2));
  const Vector take2 = hn::Set(d, static_cast<float>(1 - options.beta2));
  const Vector scale2 = hn::Set(d, static_cast<float>(1 / std::sqrt(correction2)));
  const Vector eps = hn::Set(d, static_cast<float>(options.eps));
  const Vector rate = hn::Set(d, static_cast<float>(-learning_rate / correction1));
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    Vector weight = hn::Mul(shrink, hn::Load(d, parameters + i));
    const Vector g = hn::MulAdd(decay, weight, hn::Load(d, gradient + i));
    Vector m = hn::Load(d, mean + i);
    m = hn::MulAdd(take1, hn::Sub(g, m), m);
    const Vector v = hn::MulAdd(hn::Mul(take2, g), g, hn::Mul(keep2, hn::Load(d, square + i)));
    hn::Store(m, d, mean + i);
    hn::Store(v, d, square + i);
    const Vector denominator = hn::MulAdd(hn::Sqrt(v), scale2, eps);
    weight = hn::MulAdd(rate, hn::Div(m, denominator), weight);
    store(d, weight, past_caches, parameters + i);
  }
  finish_stores(past_caches);
}

void step_with(const RmspropOptions& options, const OptimizerStep& step) {
  const auto [learning_rate, number, floats, gradient, state, past_caches, parameters] = step;
  float *square = state[0], *mean = state[1], *momentum = state[options.centered ? 2 : 1];
  const Lanes d;
  const Vector decay = hn::Set(d, static_cast<float>(options.weight_decay));
  const Vector keep = hn::Set(d, static_cast<float>(options.alpha)),
               take = hn::Set(d, static_cast<float>(1 - options.alpha));
  const Vector eps = hn::Set(d, static_cast<float>(options.eps)),
               inertia = hn::Set(d, static_cast<float>(options.momentum));
  const Vector rate = hn::Set(d, static_cast<float>(-learning_rate));
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    const Vector weight = hn::Load(d, parameters + i);
    const Vector g = hn::MulAdd(decay, weight, hn::Load(d, gradient + i));
    Vector s = hn::MulAdd(hn::Mul(take, g), g, hn::Mul(keep, hn::Load(d, square + i)));
    hn::Store(s, d, square + i);
    if (options.centered) {
      const Vector old = hn::Load(d, mean + i), m = hn::MulAdd(take, hn::Sub(g, old), old);
      hn::Store(m, d, mean + i);
      s = hn::NegMulAdd(m, m, s);
      s = hn::IfThenElse(hn::Lt(s, hn::Zero(d)), hn::Zero(d), s);  // a variance that rounding made negative
    }
    Vector update = hn::Div(g, hn::Add(hn::Sqrt(s), eps));
    if (options.momentum != 0) {
      update = hn::MulAdd(inertia, hn::Load(d, momentum + i), update);
      hn::Store(update, d, momentum + i);
    }
    store(d, hn::MulAdd(rate, update, weight), past_caches, parameters + i);
  }
  finish_stores(past_caches);
}

void optimizer_step(const OptimizerOptions& options, const OptimizerStep& step) {
  std::visit([&](const auto& optimizer) { step_with(optimizer, step); }, options);
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(add_arrays);
SWEEP_EXPORT_KERNEL(optimizer_step);

}  // namespace sweep::cpu
#endif  // HWY_ONCE
