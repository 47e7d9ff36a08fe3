// Batch normalization of one block of 16 images, channel by channel. Thread-safe: pure functions of their
// arguments.
//
// `positions` is height · width; arrays are [positions][16]. Lanes from `images` on hold no image of the
// batch: they do not count, and their gradients come in and go out as zeros.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/block.h"

namespace sweep::cpu {

/// Count, mean and summed squared deviation of some values.
struct Moments {
  double count = 0, mean = 0, squares = 0;
};

/// Moments of one channel of a block.
Moments channel_moments(const float* in, std::size_t positions, std::size_t images);

/// Moments of both sets together.
Moments combine(const Moments& a, const Moments& b);

/// out = scale · in + shift, then max(0, ·) if `relu`.
void scale_and_shift(const float* in, std::size_t positions, float scale, float shift, bool relu, float* out);

/// Σ grad and Σ grad · (in − mean). With `out` given, grad is first zeroed where out <= 0 (ReLU).
struct GradientSums {
  double gradient = 0, product = 0;
};
GradientSums gradient_sums(const float* in, const float* out, std::size_t positions, float mean, float* grad);

/// grad_in = gradient_factor · grad − deviation_factor · (in − mean) − constant. grad_in may be grad.
void normalization_gradient(const float* in, const float* grad, std::size_t positions, std::size_t images,
                            float gradient_factor, float deviation_factor, float mean, float constant,
                            float* grad_in);

}  // namespace sweep::cpu
