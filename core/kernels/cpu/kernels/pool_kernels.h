// Pooling on one block of 16 images. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// Sizes in pixels. Padding never is a maximum.
struct PoolGeometry {
  std::size_t channels, in_height, in_width, out_height, out_width;
  std::size_t kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
};

/// Maxima of in [channels][in_height][in_width][16] to out [channels][out_height][out_width][16]. argmax, of
/// the size of out, holds int32: the position y · in_width + x of the maximum in its channel.
extern const Kernel<void(const PoolGeometry& g, const float* in, float* out, float* argmax)> max_pool_forward;

/// grad_in = grad_out at the positions in argmax, summed where windows overlap, and 0 elsewhere.
void max_pool_backward(const PoolGeometry& g, const float* grad_out, const float* argmax, float* grad_in);

/// Averages over windows. With `count_padding`, PyTorch's default, the divisor is the size of the kernel,
/// else that of the part of it that is inside the image.
extern const Kernel<void(const PoolGeometry& g, bool count_padding, const float* in, float* out)>
    avg_pool_forward;
extern const Kernel<void(const PoolGeometry& g, bool count_padding, const float* grad_out, float* grad_in)>
    avg_pool_backward;

/// torch.nn.AdaptiveAvgPool2d: output i averages inputs floor(i·in/out) … ceil((i+1)·in/out) − 1 along each
/// axis. The kernel, stride and padding of `g` are not used.
extern const Kernel<void(const PoolGeometry& g, const float* in, float* out)> adaptive_avg_pool_forward;
extern const Kernel<void(const PoolGeometry& g, const float* grad_out, float* grad_in)>
    adaptive_avg_pool_backward;

}  // namespace sweep::cpu
