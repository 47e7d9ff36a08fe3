// Batch normalisation of [images][channels][plane], as torch.nn.BatchNorm2d.
#pragma once

#include <cstdint>

#include "core/kernels/cuda/kernels/share_sizes.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct BatchNormShape {
  int channels, plane;  // plane: height · width
  float eps, momentum;  // momentum: weight of the batch in the running statistics
};

/// What normalizes a channel, [channels] each: the batch's mean and 1 / sqrt(variance + eps), or those of
/// running_mean and running_var.
struct BatchNormArrays {
  float *mean, *inverse, *running_mean, *running_var;
};

/// Floats of scratch memory for the functions below, with batches of up to `images`.
int batch_norm_scratch_floats(const BatchNormShape& shape, int images);

/// Training: writes the batch's mean and inverse, and moves running_mean and running_var towards its mean and
/// its unbiased variance.
void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                           float* scratch, const BatchNormArrays& arrays);

/// The same of a batch in shares. What a share leaves, with `images` > 0 of them: [channels] means, then
/// [channels] sums of squared distances.
void batch_norm_share_statistics(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                                 float* scratch, double* share);
/// shares: [sizes.count] of the above; those of empty shares are not read.
void batch_norm_join_statistics(Stream& stream, const BatchNormShape& shape, const ShareSizes& sizes,
                                const double* shares, const BatchNormArrays& arrays);

/// Evaluation: mean and inverse from the running statistics.
void batch_norm_running(Stream& stream, const BatchNormShape& shape, const BatchNormArrays& arrays);

/// out = (in − mean) · inverse · weight + bias; weight and bias [channels], or both nullptr.
void batch_norm_forward(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                        const BatchNormArrays& arrays, const float* weight, const float* bias, float* out);

/// The sums that the gradients of a training pass need: [channels] Σ grad_out · normalised input, the
/// gradient of the weight; then [channels] Σ grad_out, that of the bias. They go to `totals`, and to
/// grad_parameters unless that is nullptr.
void batch_norm_sum_gradients(Stream& stream, const BatchNormShape& shape, int images, const float* in,
                              const float* grad_out, const BatchNormArrays& arrays, float* scratch,
                              float* totals, float* grad_parameters);

/// Adds up those sums of a batch's shares, [sizes.count][2 · channels], but of empty ones.
void batch_norm_join_gradients(Stream& stream, const BatchNormShape& shape, const ShareSizes& sizes,
                               const float* shares, float* totals);

/// The gradient of the input, added to what is there if `add`. batch_images: of all shares of the batch, as
/// mean, inverse and totals are.
void batch_norm_backward(Stream& stream, const BatchNormShape& shape, int images, std::int64_t batch_images,
                         const float* in, const float* grad_out, const BatchNormArrays& arrays,
                         const float* weight, const float* totals, bool add, float* grad_in);

}  // namespace sweep::cuda
