// Convolution with a kernel 3 or 5 wide, fused with 2×2 max pooling, by Winograd's minimal filtering
// along rows, F(4, 3) and F(4, 5), on one block of 16 images: 6 or 8 products for 4 outputs and a row
// of the kernel, where the direct kernels take 12 or 20. Thread-safe: pure functions of their
// arguments and scratch memory.
//
// Only one axis is transformed, for the sake of rounding: with 8 points along both axes, sums would lose
// two decimal digits. Every 4 pixels of a row, the 6 or 8 pixels from there on are transformed to as
// many "frequencies". At each frequency a convolution along columns is left, whose results are
// transformed back to 4 outputs. With normally distributed values the largest error of an output is
// twice that of the direct kernels.
//
// Transformed rows of the input are kept in a ring buffer of kernel_height + 1 rows, what a row of pooling
// windows needs, so each row is transformed once.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// Whether winograd_rows_pool_forward() supports this convolution and is faster than conv_pool_forward().
/// Depends on the sizes alone, so that the choice does not depend on the machine.
bool use_winograd_rows(const ConvGeometry& g);

/// Transforms weights [out_channels][kernel_height][kernel_width][in_channels] to
/// winograd_rows_weight_floats() floats.
std::size_t winograd_rows_weight_floats(const ConvGeometry& g);
void winograd_rows_transform_weights(const ConvGeometry& g, const float* weights, float* transformed);

/// Floats of scratch memory, aligned to a cache line, that the function below
/// needs. Its contents do not matter.
std::size_t winograd_rows_scratch_floats(const ConvGeometry& g);

/// Like conv_pool_forward(), with `transformed` weights.
extern const Kernel<void(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                         bool relu, float* out, float* argmax, float* scratch)>
    winograd_rows_pool_forward;

}  // namespace sweep::cpu
