// Losses, their gradients and the sums that an epoch reports.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "core/spec/loss.h"

namespace sweep::cuda {

/// Totals since they were last cleared; on the device.
struct DeviceTotals {
  double loss;  // sum over samples
  std::int64_t correct, samples;
};

/// Elements that `totals` needs for batches of up to `images`.
int loss_totals_count(int images);

/// Adds the batch's losses, correct predictions and samples to `totals`, each block to its own element.
/// outputs [images][classes]. The labels are input->labels[rows[i]], rows [images]. grad_outputs
/// [images][classes]: gets the gradient of the mean loss; nullptr if nobody needs it. The prediction is the
/// first maximum; a NaN counts as one.
void loss(Stream& stream, const LossOptions& options, const StepInput* input, const std::uint32_t* rows,
          int images, int classes, const float* outputs, DeviceTotals* totals, float* grad_outputs);

}  // namespace sweep::cuda
