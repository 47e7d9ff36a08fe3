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

/// How many values an average divides the sum of its window by: with kWithPadding, PyTorch's default, the
/// size of the kernel, with kInside that of the part of it that is inside the image. kAdaptive is
/// torch.nn.AdaptiveAvgPool2d: output i averages inputs floor(i·in/out) … ceil((i+1)·in/out) − 1 along each
/// axis; the kernel, stride and padding are not used.
enum class Average { kWithPadding, kInside, kAdaptive };

/// Averages over windows.
extern const Kernel<void(const PoolGeometry& g, Average average, const float* in, float* out)>
    avg_pool_forward;
extern const Kernel<void(const PoolGeometry& g, Average average, const float* grad_out, float* grad_in)>
    avg_pool_backward;

}  // namespace sweep::cpu
