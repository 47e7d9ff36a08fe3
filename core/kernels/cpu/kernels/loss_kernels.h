// Losses of one block of 16 images, with their gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// logits [classes][16]; labels [16], each in [0, classes). Writes, per image: loss [16] in nats; predicted
/// [16], the class of the largest logit (the first of equals). With grad_logits [classes][16]: (softmax −
/// target) · scale[image], where a scale of 0 leaves an image out. `smoothing` of the target is spread over
/// all classes. Thread-safe.
void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           float smoothing, const float* scale, float* loss, std::int32_t* predicted,
                           float* grad_logits);

/// The same of the mean squared distance to one-hot labels: loss = Σ (output − target)² / classes, gradient
/// 2 · (output − target) / classes · scale. Thread-safe.
void mean_squared_error(const float* outputs, const std::int32_t* labels, std::size_t classes,
                        const float* scale, float* loss, std::int32_t* predicted, float* grad_outputs);

}  // namespace sweep::cpu
