// Cross entropy of one block of 16 samples, and its gradient. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// torch.nn.CrossEntropyLoss. logits [classes][16]; labels [16], each in [0, classes). Writes loss
/// [16], in nats, and predicted [16], the class of the largest logit (the first of equal ones). If
/// grad_logits [classes][16] is not nullptr, writes (softmax − target) · scale[image] there; a scale of
/// 0, for lanes that are not in the batch, gives exactly 0. target is (1 − smoothing) at the label plus
/// smoothing / classes everywhere.
extern const Kernel<void(const float* logits, const std::int32_t* labels, std::size_t classes,
                         float smoothing, const float* scale, float* loss, std::int32_t* predicted,
                         float* grad_logits)>
    softmax_cross_entropy;

/// The same with class weights [classes]: the target is w[label] · (1 − smoothing) at the label plus w[c] ·
/// smoothing / classes everywhere, and what the loss and the gradient multiply the softmax with is its sum.
extern const Kernel<void(const float* logits, const std::int32_t* labels, std::size_t classes,
                         float smoothing, const float* weights, const float* scale, float* loss,
                         std::int32_t* predicted, float* grad_logits)>
    weighted_cross_entropy;

}  // namespace sweep::cpu
