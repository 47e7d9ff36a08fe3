// Convolutions and linear layers whose factors are rounded to bf16 (8 bits of exponent, 8 of
// precision). Products are exact, since 8 · 8 bits fit a float, and sums are fp32. Thread-safe: pure
// functions of their arguments.
//
// Factors come as pairs: 32 bits with the values of two neighbouring channels (or features), the even one in
// the lower half, the odd one in the upper; an odd last channel is paired with zero. An array of pairs has
// the type and layout of an array of floats with half as many channels, rounded up, so the tiles of fp32 need
// nothing but another multiply-add: sum += odd · odd, then sum += even · even, which is what the instruction
// VDPBF16PS computes. It treats denormal numbers as zero, so the two implementations below give the same bits
// while FlushDenormals is in force.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/kernels/conv_kernels.h"

namespace sweep::cpu {

/// The functions of conv_kernels.h and linear_kernels.h on pairs. What is summed over is counted in
/// pairs: in_channels of the two forward convolutions, out_channels of conv_backward_input, `in` of
/// linear_forward, `out` of linear_backward_input. Inputs (or gradients) and weights are pairs;
/// biases and results are floats.
struct Bf16Kernels {
  std::size_t channel_tile;  // output channels of the largest register tile, as conv_channel_tile()
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

/// The kernels that use AVX512_BF16; nullptr if the processor or the compiler does not have it.
const Bf16Kernels* bf16_hardware_kernels();

/// Kernels with the same results on any processor, slower than fp32.
const Bf16Kernels& bf16_emulated_kernels();

}  // namespace sweep::cpu
