// Losses, their gradients and the sums that an epoch reports.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "core/spec/loss.h"

namespace sweep::cuda {

/// Sums since they were last cleared, on the device.
struct DeviceTotals {
  double loss;
  std::int64_t correct, samples;
};

/// Elements of `totals` for batches of up to `images`.
int loss_totals_count(int images);

/// Adds the batch's losses, right predictions and samples to `totals`, each block to an element of its own.
/// outputs [images][classes]; labels are those of `rows` [images] in `input`. grad_outputs: gradient of the
/// mean loss, or nullptr. A prediction is the first of the largest outputs; NaN counts as the largest.
void loss(Stream& stream, const LossOptions& options, const StepInput* input, const std::uint32_t* rows,
          int images, int classes, const float* outputs, DeviceTotals* totals, float* grad_outputs);

}  // namespace sweep::cuda
