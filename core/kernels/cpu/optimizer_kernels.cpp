#include "core/kernels/cpu/optimizer_kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/optimizer_kernels.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

void reduce_gradients(const float* partials, std::size_t count, std::size_t stride, std::size_t floats,
                      float* sum) {
  const Lanes d;
  for (std::size_t i = 0; i < floats; i += hn::Lanes(d)) {
    Vector total = hn::Load(d, partials + i);
    for (std::size_t s = 1; s < count; ++s) total = hn::Add(total, hn::Load(d, partials + s * stride + i));
    hn::Store(total, d, sum + i);
  }
}

void sgd_step(const SgdOptions& options, double learning_rate, bool first_step, std::size_t floats,
              const float* gradient, float* momentum, float* parameters) {
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
    hn::Store(hn::MulAdd(rate, g, weight), d, parameters + i);
  }
}

void adam_step(const AdamOptions& options, double learning_rate, std::int64_t step, std::size_t floats,
               const float* gradient, float* mean, float* square, float* parameters) {
  const Lanes d;
  // Scalars in double and then rounded, as PyTorch's single-tensor implementation has them.
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
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
    hn::Store(weight, d, parameters + i);
  }
}

void rmsprop_step(const RmspropOptions& options, double learning_rate, std::size_t floats,
                  const float* gradient, float* square, float* mean, float* momentum, float* parameters) {
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
    }
    Vector update = hn::Div(g, hn::Add(hn::Sqrt(s), eps));
    if (options.momentum != 0) {
      update = hn::MulAdd(inertia, hn::Load(d, momentum + i), update);
      hn::Store(update, d, momentum + i);
    }
    hn::Store(hn::MulAdd(rate, update, weight), d, parameters + i);
  }
}

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

HWY_EXPORT(reduce_gradients);
HWY_EXPORT(sgd_step);
HWY_EXPORT(adam_step);
HWY_EXPORT(rmsprop_step);

void reduce_gradients(const float* partials, std::size_t count, std::size_t stride, std::size_t floats,
                      float* sum) {
  HWY_DYNAMIC_DISPATCH(reduce_gradients)(partials, count, stride, floats, sum);
}

void sgd_step(const SgdOptions& options, double learning_rate, bool first_step, std::size_t floats,
              const float* gradient, float* momentum, float* parameters) {
  HWY_DYNAMIC_DISPATCH(sgd_step)(options, learning_rate, first_step, floats, gradient, momentum, parameters);
}

void adam_step(const AdamOptions& options, double learning_rate, std::int64_t step, std::size_t floats,
               const float* gradient, float* mean, float* square, float* parameters) {
  HWY_DYNAMIC_DISPATCH(adam_step)(options, learning_rate, step, floats, gradient, mean, square, parameters);
}

void rmsprop_step(const RmspropOptions& options, double learning_rate, std::size_t floats,
                  const float* gradient, float* square, float* mean, float* momentum, float* parameters) {
  HWY_DYNAMIC_DISPATCH(rmsprop_step)
  (options, learning_rate, floats, gradient, square, mean, momentum, parameters);
}

double sum_of_squares(const float* values, std::size_t floats) {
  double sum = 0;
  for (std::size_t i = 0; i < floats; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

void scale_values(float factor, std::size_t floats, float* values) {
  for (std::size_t i = 0; i < floats; ++i) values[i] *= factor;
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
