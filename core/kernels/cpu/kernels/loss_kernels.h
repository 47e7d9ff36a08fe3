// Losses of one block of 16 images, and their gradients. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// torch.nn.CrossEntropyLoss. logits [classes][16]; labels [16], each in [0, classes). Writes loss
/// [16], in nats, and predicted [16], the class of the largest logit (the first of equal ones). If
/// grad_logits [classes][16] is not nullptr, writes (softmax − target) · scale[image] there; a scale of
/// 0, for lanes that are not in the batch, gives exactly 0. target is (1 − smoothing) at the label plus
/// smoothing / classes everywhere.
void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           float smoothing, const float* scale, float* loss, std::int32_t* predicted,
                           float* grad_logits);

/// The same for the mean squared error against one-hot labels, as torch.nn.MSELoss: loss = Σ (output −
/// target)² / classes, gradient 2 · (output − target) / classes · scale.
void mean_squared_error(const float* outputs, const std::int32_t* labels, std::size_t classes,
                        const float* scale, float* loss, std::int32_t* predicted, float* grad_outputs);

}  // namespace sweep::cpu
