// Batch normalization of one block of 16 images, channel by channel. Thread-safe: pure
// functions of their arguments.
//
// A channel is `rows` rows of `width` pixels of 16 floats. Arrays are dense, except that each function
// has one array with a pitch: the one that a neighbouring convolution wants padded. Lanes from
// `images` on are not in the batch: they do not count, and their gradients are zero, both those that
// come in and those that go out.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// Count, mean and sum of squared deviations of some values.
struct Moments {
  double count = 0, mean = 0, squares = 0;
};

/// Size of a channel in pixels, and the pitch, the pixels from row to row, of the
/// array that may not be dense.
struct ChannelSize {
  std::size_t rows, width, pitch;
};

/// Moments of one channel of a block: in [pixels][16]; only the first `images` lanes count.
extern const Kernel<Moments(const float* in, std::size_t pixels, std::size_t images)> channel_moments;

/// Moments of the union of both sets.
Moments combine(const Moments& a, const Moments& b);

/// out = scale · in + shift, then max(0, ·) if `relu`. The pitch is out's.
extern const Kernel<void(const float* in, const ChannelSize& size, float scale, float shift, bool relu,
                         float* out)>
    scale_and_shift;

/// Σ grad and Σ grad · (in − mean). If `out` is not nullptr, grad is set to zero first where out, the output
/// of ReLU, is not above 0. The pitch is out's.
struct GradientSums {
  double gradient = 0, product = 0;
};
extern const Kernel<GradientSums(const float* in, const float* out, const ChannelSize& size, float mean,
                                 float* grad)>
    gradient_sums;

/// grad_in = gradient_factor · grad − deviation_factor · (in − mean) − constant. The pitch is grad_in's.
struct NormalizationFactors {
  float gradient_factor, deviation_factor, mean, constant;
};
extern const Kernel<void(const float* in, const float* grad, const ChannelSize& size, std::size_t images,
                         const NormalizationFactors& factors, float* grad_in)>
    normalization_gradient;

}  // namespace sweep::cpu
