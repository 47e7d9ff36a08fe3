// Batch normalisation of [images][channels][plane], as torch.nn.BatchNorm2d does it.
#pragma once

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct BatchNormShape {
  int channels, plane;
  float eps, momentum;
};

/// Floats of scratch memory that the functions below need for up to `images`.
int batch_norm_scratch_floats(const BatchNormShape& shape, int images);

/// Mean and 1 / sqrt(variance + eps) of each channel of the batch, [channels] each; moves running_mean and
/// running_var towards the batch's mean and (unbiased) variance.
void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                           float* scratch, float* mean, float* inverse, float* running_mean,
                           float* running_var);

/// The same from the running statistics, for evaluation.
void batch_norm_running(Stream& stream, const BatchNormShape& shape, const float* running_mean,
                        const float* running_var, float* mean, float* inverse);

/// out = (in − mean) · inverse · weight + bias; weight and bias [channels], or both nullptr.
void batch_norm_forward(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                        const float* mean, const float* inverse, const float* weight, const float* bias,
                        float* out);

/// Of training. grad_parameters: [channels] of weight, then [channels] of bias; nullptr if there are none.
/// grad_in, added to what is there if `add`; nullptr if nobody needs it.
void batch_norm_backward(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                         const float* grad_out, const float* mean, const float* inverse, const float* weight,
                         float* scratch, float* grad_parameters, bool add, float* grad_in);

}  // namespace sweep::cuda
