// Pooling. Arrays are [images][channels][height][width].
#pragma once

#include <cstdint>
#include <optional>

#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

struct PoolShape {
  int channels, in_height, in_width, out_height, out_width;
  // Of max_pool2d and avg_pool2d; adaptive pooling has windows of its own.
  int kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
};

enum class Average { kWithPadding, kWithoutPadding, kAdaptive };

/// A layer that is pooling and nothing else.
struct PoolLayer {
  PoolShape shape;
  std::optional<Average> average = {};  // nothing: the maximum
};

/// argmax: which element of its plane each maximum is, as an array of the same shape as out. A NaN wins over
/// every number, the first over equals.
void max_pool_forward(Stream& stream, const PoolShape& shape, int images, const float* in, float* out,
                      std::int32_t* argmax);
/// grad_in, added to what is there if `add`; below too.
void max_pool_backward(Stream& stream, const PoolShape& shape, int images, const float* grad_out,
                       const std::int32_t* argmax, bool add, float* grad_in);

void avg_pool_forward(Stream& stream, const PoolShape& shape, Average average, int images, const float* in,
                      float* out);
void avg_pool_backward(Stream& stream, const PoolShape& shape, Average average, int images,
                       const float* grad_out, bool add, float* grad_in);

}  // namespace sweep::cuda
