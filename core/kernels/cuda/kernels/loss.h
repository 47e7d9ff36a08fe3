// Losses, their gradients and the sums that an epoch reports.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "core/network/loss.h"

namespace sweep::cuda {

/// LossOptions for kernels.
struct LossParameters {
  LossOptions::Kind kind = LossOptions::Kind::kCrossEntropy;
  float smoothing = 0, beta = 1;
  const float* class_weights = nullptr;  // [outputs], on the device; nullptr: all 1
};

/// Elements that `totals` needs for batches of up to `images`.
int loss_totals_count(int images);

/// Adds the batch's losses and counts to `totals`, each block to its own element. outputs [images][count].
/// The target of sample i is number rows[i] of `input`, rows [images]. grad_outputs [images][count]: gets the
/// gradient of the mean loss; nullptr if nobody needs it. The prediction is the first
/// maximum; a NaN counts as one.
void loss(Stream& stream, const LossParameters& parameters, const StepInput* input, const std::uint32_t* rows,
          int images, int count, const float* outputs, Totals* totals, float* grad_outputs);

}  // namespace sweep::cuda
