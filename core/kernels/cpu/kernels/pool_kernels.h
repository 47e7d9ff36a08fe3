// Pooling on one block of 16 images. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Sizes in elements; padding takes part in no maximum.
struct PoolGeometry {
  std::size_t channels, in_height, in_width, out_height, out_width;
  std::size_t kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
};

/// in [channels][in_height][in_width][16] to out [channels][out_height][out_width][16]; winner, of out's
/// size, holds int32: the position y·in_width + x of the maximum within its channel.
void max_pool_forward(const PoolGeometry& g, const float* in, float* out, float* argmax);

/// grad_in = grad_out at the winners' positions, summed where windows overlap, else 0.
void max_pool_backward(const PoolGeometry& g, const float* grad_out, const float* argmax, float* grad_in);

/// Averages over the same windows. `count_padding` divides by the whole kernel, as PyTorch does by default,
/// else by the part of it inside the image.
void avg_pool_forward(const PoolGeometry& g, bool count_padding, const float* in, float* out);
void avg_pool_backward(const PoolGeometry& g, bool count_padding, const float* grad_out, float* grad_in);

/// torch.nn.AdaptiveAvgPool2d: output i averages inputs floor(i·in/out) … ceil((i+1)·in/out) − 1 along each
/// axis. Only the channels and extents of `g` count.
void adaptive_avg_pool_forward(const PoolGeometry& g, const float* in, float* out);
void adaptive_avg_pool_backward(const PoolGeometry& g, const float* grad_out, float* grad_in);

}  // namespace sweep::cpu
