// Softmax cross-entropy of one block of 16 images, with its gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cpu/block.h"

namespace sweep::cpu {

/// logits [classes][16]; labels [16], each in [0, classes). Writes, per image: loss [16] in nats; predicted
/// [16], the class of the largest logit (the first of equals). With grad_logits [classes][16]: (softmax −
/// onehot) · scale[image], where a scale of 0 leaves an image out. Thread-safe.
void softmax_cross_entropy(const float* logits, const std::int32_t* labels, std::size_t classes,
                           const float* scale, float* loss, std::int32_t* predicted, float* grad_logits);

}  // namespace sweep::cpu
