// Forward convolution, the gradient of its input, and the packing of weights for both.
#include "core/kernels/cpu/kernels/conv_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/cpu/kernels/conv_forward.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

#include "core/kernels/cpu/kernels/conv_tiles-inl.h"
#include "core/kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sweep::cpu::HWY_NAMESPACE {

void conv_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias, bool relu,
                  float* out) {
  conv_forward_tiles(g, in, packed, bias, relu, out);
}

void conv_pool_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias,
                       bool relu, float* out, float* argmax) {
  conv_pool_forward_tiles(g, in, packed, bias, relu, out, argmax);
}

void conv_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                         std::size_t pad_y, std::size_t pad_x, std::size_t height, std::size_t width,
                         float* grad_in) {
  conv_backward_input_tiles(g, gradient, packed, pad_y, pad_x, height, width, grad_in);
}

std::size_t conv_channel_tile() { return kMaxChannelTile; }

}  // namespace sweep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sweep::cpu {

SWEEP_EXPORT_KERNEL(conv_forward);
SWEEP_EXPORT_KERNEL(conv_pool_forward);
SWEEP_EXPORT_KERNEL(conv_backward_input);
SWEEP_EXPORT_KERNEL(conv_channel_tile);

void import_conv_weights(const ConvGeometry& g, const float* pytorch, float* weights) {
  for (std::size_t out = 0; out < g.out_channels; ++out) {
    for (std::size_t tap = 0; tap < g.taps(); ++tap) {
      for (std::size_t in = 0; in < g.in_channels; ++in)
        *weights++ = pytorch[(out * g.in_channels + in) * g.taps() + tap];
    }
  }
}

void export_conv_weights(const ConvGeometry& g, const float* weights, float* pytorch) {
  for (std::size_t out = 0; out < g.out_channels; ++out) {
    for (std::size_t tap = 0; tap < g.taps(); ++tap) {
      for (std::size_t in = 0; in < g.in_channels; ++in)
        pytorch[(out * g.in_channels + in) * g.taps() + tap] = *weights++;
    }
  }
}

void pack_conv_weights(const ConvGeometry& g, const float* weights, float* packed) {
  const std::size_t tile = conv_channel_tile();
  const std::size_t tiles = (g.out_channels + tile - 1) / tile;
  const std::size_t taps = g.taps();
  for (std::size_t t = 0; t < tiles; ++t) {
    const std::size_t begin = part_begin(g.out_channels, tiles, t),
                      end = part_begin(g.out_channels, tiles, t + 1);
    for (std::size_t in = 0; in < g.in_channels; ++in) {
      for (std::size_t tap = 0; tap < taps; ++tap) {
        for (std::size_t out = begin; out < end; ++out)
          *packed++ = weights[(out * taps + tap) * g.in_channels + in];
      }
    }
  }
}

void pack_conv_weights_transposed(const ConvGeometry& g, const float* weights, float* packed) {
  const std::size_t tile = conv_channel_tile();
  const std::size_t tiles = (g.in_channels + tile - 1) / tile;
  const std::size_t taps = g.taps();
  for (std::size_t t = 0; t < tiles; ++t) {
    const std::size_t begin = part_begin(g.in_channels, tiles, t),
                      end = part_begin(g.in_channels, tiles, t + 1);
    for (std::size_t out = 0; out < g.out_channels; ++out) {
      for (std::size_t tap = taps; tap-- > 0;) {
        for (std::size_t in = begin; in < end; ++in)
          *packed++ = weights[(out * taps + tap) * g.in_channels + in];
      }
    }
  }
}

}  // namespace sweep::cpu
#endif  // HWY_ONCE
