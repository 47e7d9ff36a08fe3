// Convolution with a kernel 3 or 5 wide, fused with 2×2 max pooling, by Winograd's minimal filtering along
// rows, F(4, 3) and F(4, 5), on one block of 16 images: 6 or 8 products for 4 outputs of a row of the kernel,
// where the direct way takes 12 or 20. Thread-safe: pure functions of their arguments, except for the scratch
// memory.
//
// Along one axis only, because that keeps the roundings: with 8 points along both, sums would lose two
// digits. Each 6 or 8 pixels of a row, 4 pixels from one to the next, are transformed to as many
// "frequencies"; at each of them what is left is a convolution along columns, whose results are transformed
// back to 4 outputs. With normal values the largest error of an output is twice that of the direct sums.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"

namespace sweep::cpu {

/// Whether conv_pool_forward() should go through winograd_rows_pool_forward(): it can do it and takes less
/// time. Depends on the sizes alone, so that the bits do not depend on the machine.
bool use_winograd_rows(const ConvGeometry& g);

/// Transformed weights from [out_channels][kernel_height][kernel_width][in_channels].
std::size_t winograd_rows_weight_floats(const ConvGeometry& g);
void winograd_rows_transform_weights(const ConvGeometry& g, const float* weights, float* transformed);

/// Floats of scratch memory that the function below needs, aligned to a cache line.
std::size_t winograd_rows_scratch_floats(const ConvGeometry& g);

/// As conv_pool_forward().
void winograd_rows_pool_forward(const ConvGeometry& g, const float* in, const float* transformed,
                                const float* bias, bool relu, float* out, float* argmax, float* scratch);

}  // namespace sweep::cpu
