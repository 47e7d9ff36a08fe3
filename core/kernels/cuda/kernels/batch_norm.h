// Batch normalisation of [images][channels][plane], as torch.nn.BatchNorm2d.
#pragma once

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct BatchNormShape {
  int channels, plane;  // plane: height · width
  float eps, momentum;  // momentum: weight of the batch in the running statistics
};

/// Floats of scratch memory for the functions below, with batches of up to `images`.
int batch_norm_scratch_floats(const BatchNormShape& shape, int images);

/// Training: writes mean and inverse = 1 / sqrt(variance + eps) of the batch, [channels] each, and moves
/// running_mean and running_var towards its mean and its unbiased variance.
void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                           float* scratch, float* mean, float* inverse, float* running_mean,
                           float* running_var);

/// Evaluation: mean and inverse from the running statistics.
void batch_norm_running(Stream& stream, const BatchNormShape& shape, const float* running_mean,
                        const float* running_var, float* mean, float* inverse);

/// out = (in − mean) · inverse · weight + bias; weight and bias [channels], or both nullptr.
void batch_norm_forward(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                        const float* mean, const float* inverse, const float* weight, const float* bias,
                        float* out);

/// The gradients of a training pass. mean and inverse: as batch_norm_statistics() wrote them.
/// grad_parameters: [channels] of weight, then [channels] of bias; nullptr if there are none. grad_in: added
/// to what is there if `add`; nullptr if nobody needs it.
void batch_norm_backward(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                         const float* grad_out, const float* mean, const float* inverse, const float* weight,
                         float* scratch, float* grad_parameters, bool add, float* grad_in);

}  // namespace sweep::cuda
