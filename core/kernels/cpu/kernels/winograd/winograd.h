// 3×3 convolutions by Winograd's minimal filtering, on one block of 16 images: 36 products for 4×4 outputs of
// a pair of channels with stride 1, and 81 with stride 2, where the direct way takes 144. Thread-safe: pure
// functions of their arguments, except for the scratch memory.
//
// The patch of the input that 4×4 outputs see is transformed to 36 or 81 factors; for each of them a
// convolution is a product of matrices, [out][in] · [in][tiles and images], and the results at 36 or 25
// "frequencies" are transformed back to outputs (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015). The gradient of the weights is the transposed algorithm: transformed gradients ×
// transformed patches, summed over tiles and images, and transformed back once per block.
//
// The sums have other roundings than the direct ones; see winograd_transforms-inl.h for how large.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"

namespace sweep::cpu {

/// Whether this convolution should go through the functions below, in all three directions: they can do it
/// and take less time than the direct kernels. Depends on the sizes alone, so that the bits do not depend on
/// the machine.
bool use_winograd(const ConvGeometry& g);

/// Transformed weights for winograd_forward(), and for winograd_backward_input(), from
/// [out_channels][3][3][in_channels]; winograd_weight_floats() each.
std::size_t winograd_weight_floats(const ConvGeometry& g);
void winograd_transform_weights(const ConvGeometry& g, const float* weights, float* transformed);
void winograd_transform_weights_transposed(const ConvGeometry& g, const float* weights, float* transformed);

/// Floats of scratch memory that each of the three functions below needs, aligned to a cache line.
std::size_t winograd_scratch_floats(const ConvGeometry& g);

/// As conv_forward().
void winograd_forward(const ConvGeometry& g, const float* in, const float* transformed, const float* bias,
                      bool relu, float* out, float* scratch);

/// As conv_backward_input().
void winograd_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* transformed,
                             std::size_t pad_y, std::size_t pad_x, std::size_t height, std::size_t width,
                             float* grad_in, float* scratch);

/// As conv_backward_weights() does for the weights.
void winograd_backward_weights(const ConvGeometry& g, const float* in, const ConvGradient& gradient,
                               float* grad_weights, float* scratch);

}  // namespace sweep::cpu
