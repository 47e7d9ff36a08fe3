// Loads a block of 16 samples, and compares the network's outputs with their targets: losses with their
// gradients, and counts of how good outputs are. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"
#include "core/network/loss.h"

namespace sweep::cpu {

/// out [pixels][16] = byte / 255, correctly rounded. images: 16 pointers to `pixels` bytes each,
/// channel by channel.
extern const Kernel<void(const std::uint8_t* const (&images)[kLanes], std::size_t pixels, float* out)>
    load_pixels;

/// out [values][16] = the values of 16 samples. samples: 16 pointers to `values` floats each.
extern const Kernel<void(const float* const (&samples)[kLanes], std::size_t values, float* out)> load_floats;

/// (x − mean[c]) / std[c] in place; values [channels][plane][16], mean and std one per channel.
extern const Kernel<void(std::span<const float> mean, std::span<const float> std, std::size_t plane,
                         float* values)>
    normalize_pixels;

/// torch.nn.CrossEntropyLoss. logits [classes][16]; labels [16], each in [0, classes); weights [classes], or
/// nullptr: all 1. Writes loss [16], in nats, and predicted [16], the class of the largest logit (the first
/// of equal ones). If grad_logits [classes][16] is not nullptr, writes the gradient of loss · scale[sample]
/// there; a scale of 0, for lanes that are not in the batch, gives exactly 0.
extern const Kernel<void(const float* logits, const std::int32_t* labels, std::size_t classes,
                         float smoothing, const float* weights, const float* scale, float* loss,
                         std::int32_t* predicted, float* grad_logits)>
    cross_entropy;

/// The targets of a block: classes, or a number per output.
struct BlockTargets {
  const std::int32_t* labels = nullptr;  // [16]
  const float* numbers = nullptr;        // [outputs][16]; nullptr: 1 for the label's output, 0 for the others
};

/// mse, l1, smooth_l1 or bce_with_logits; see LossOptions. outputs [count][16]. Writes loss [16], the mean
/// over the outputs. If grad_outputs [count][16] is not nullptr, writes the gradient of loss · scale[sample]
/// there; a scale of 0, for lanes that are not in the batch, gives exactly 0.
extern const Kernel<void(const LossOptions& options, const float* outputs, const BlockTargets& targets,
                         std::size_t count, const float* scale, float* loss, float* grad_outputs)>
    pointwise_loss;

/// Writes predicted [16]: the class of the largest output, the first of equal ones. Of a single output, which
/// is that of two classes: whether it is above 0.
extern const Kernel<void(const float* outputs, std::size_t count, std::int32_t* predicted)> predict_classes;

/// Writes ranks [16]: how many outputs come before the label's, being larger, or equal and earlier. A label
/// whose output is NaN comes first.
extern const Kernel<void(const float* outputs, const std::int32_t* labels, std::size_t count,
                         std::int32_t* ranks)>
    rank_labels;

/// Writes the sums of |prediction − number| and of its square over the outputs, [16] each. `probabilities`:
/// the prediction is the sigmoid of the output.
extern const Kernel<void(const float* outputs, const float* numbers, std::size_t count, bool probabilities,
                         float* absolute, float* squared)>
    number_errors;

}  // namespace sweep::cpu
