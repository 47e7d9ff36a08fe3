// Pooling. Activations are [images][channels][height][width].
#pragma once

#include <cstdint>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct PoolShape {
  int channels, in_height, in_width, out_height, out_width;
  // 0 in adaptive pooling, which derives its windows from the sizes.
  int kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
};

/// Writes the maxima and their argmax, of the same shape as out: y · in_width + x in the input plane. As
/// PyTorch: a NaN wins over every number, and the first of equals wins.
void max_pool_forward(Stream& stream, const PoolShape& shape, int images, const float* in, float* out,
                      std::int32_t* argmax);
/// The gradient of the input, added to what grad_in holds if `add`.
void max_pool_backward(Stream& stream, const PoolShape& shape, int images, const float* grad_out,
                       const std::int32_t* argmax, bool add, float* grad_in);

/// The average of each window: of its part inside the image, or, if `with_padding`, of all of it.
void avg_pool_forward(Stream& stream, const PoolShape& shape, bool with_padding, int images, const float* in,
                      float* out);
/// The gradient of the input, added to what grad_in holds if `add`.
void avg_pool_backward(Stream& stream, const PoolShape& shape, bool with_padding, int images,
                       const float* grad_out, bool add, float* grad_in);

}  // namespace sweep::cuda
