// Max pooling and ReLU on one block of 16 images. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/block.h"

namespace sweep::cpu {

/// Sizes in elements; padding takes part in no maximum.
struct PoolGeometry {
  std::size_t channels, in_height, in_width, out_height, out_width;
  std::size_t kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
};

/// in [channels][in_height][in_width][16] to out [channels][out_height][out_width][16]; winner, of out's
/// size, holds int32: the position y·in_width + x of the maximum within its channel.
void max_pool_forward(const PoolGeometry& g, const float* in, float* out, float* winner);

/// grad_in = grad_out at the winners' positions, summed where windows overlap, else 0.
void max_pool_backward(const PoolGeometry& g, const float* grad_out, const float* winner, float* grad_in);

/// out = max(0, in), over `floats` values.
void relu_forward(const float* in, std::size_t floats, float* out);

/// grad_in = grad_out where out > 0, else 0. grad_in may be grad_out.
void relu_backward(const float* grad_out, const float* out, std::size_t floats, float* grad_in);

}  // namespace sweep::cpu
