// Convolutions and fully connected layers whose factors are rounded to bf16 (8 bits of exponent, 8 of
// precision) while products are exact and sums are fp32. Thread-safe: pure functions of their arguments.
//
// Factors come as pairs: 32 bits that hold the values of two neighbouring channels (or features), the even
// one in the lower half, the odd one, zero behind an odd last, in the upper. An array of pairs has the layout
// of an array of floats with half as many channels, rounded up, and its element type; sums are over both
// members: sum += odd · odd, then sum += even · even, as the instruction VDPBF16PS does. It takes denormal
// numbers for zero, so both implementations below give the same bits where FlushDenormals is in force.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"

namespace sweep::cpu {

/// The functions of conv_kernels.h and linear_kernels.h with pairs for floats. Geometries count pairs where
/// they count what is summed over: in_channels of the two forward convolutions, out_channels of
/// conv_backward_input, `in` of linear_forward, `out` of linear_backward_input.
struct Bf16Kernels {
  std::size_t channel_tile;  // output channels in the widest tile of a convolution
  void (*conv_forward)(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                       bool relu, float* out);
  void (*conv_pool_forward)(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                            bool relu, float* out, float* argmax);
  void (*conv_backward_input)(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                              std::size_t pad_y, std::size_t pad_x, std::size_t height, std::size_t width,
                              float* grad_in);
  void (*linear_forward)(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                         const float* x, float* y);
  void (*linear_backward_input)(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                                float* grad_x);
};

/// With AVX512_BF16; nullptr where the processor or the compiler has none.
const Bf16Kernels* bf16_hardware_kernels();

/// The same results on any processor, slower than fp32.
const Bf16Kernels& bf16_emulated_kernels();

}  // namespace sweep::cpu
