// Layers except convolutions on one block of 16 images. Thread-safe: pure functions of their arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"
#include "core/network/activation.h"

namespace sweep::cpu {

// Activation functions and sums, element by element.

/// out = f(in), over `floats` values, a multiple of kLanes. `coefficient`: leaky_relu's slope.
extern const Kernel<void(Activation activation, float coefficient, const float* in, std::size_t floats,
                         float* out)>
    activation_forward;

/// grad_in = grad_out · f'(in), where out = f(in). grad_in may be grad_out.
extern const Kernel<void(Activation activation, float coefficient, const float* grad_out, const float* in,
                         const float* out, std::size_t floats, float* grad_in)>
    activation_backward;

/// out = a + b, then max(0, ·) if `relu`, over `floats` values, a multiple of kLanes. out may be a or b.
extern const Kernel<void(const float* a, const float* b, std::size_t floats, bool relu, float* out)>
    sum_values;

/// The factors of a dropout: 0 for random integers below `threshold`, otherwise `kept`. The random integers
/// of four elements of an image are philox4x32({element / 4, image, step, use}, key), in order.
struct DropoutDraw {
  std::array<std::uint32_t, 2> key;
  std::uint32_t first_image, step, use, threshold;
  float kept;
};

/// factors [elements][16] of the 16 images from draw.first_image on.
extern const Kernel<void(const DropoutDraw& draw, std::size_t elements, float* factors)> dropout_factors;

// Fully connected layers.

/// Weights are stored in panels of kLanes outputs, [panel][in][kLanes], the last one padded with zeros. One
/// layout serves all three products: forward and the input's gradient broadcast single weights from it, and
/// the gradient of the weights has vectors along the outputs. linear_panels() is the number of panels.
inline std::size_t linear_panels(std::size_t out_features) { return (out_features + kLanes - 1) / kLanes; }

/// Where the first weight of output `out` is in them; the others follow kLanes apart.
constexpr std::size_t linear_weight_place(std::size_t in_features, std::size_t out) {
  return out / kLanes * in_features * kLanes + out % kLanes;
}

/// The arrays of a block: x and its gradient [in][16], y and its gradient [out][16].
struct LinearBlock {
  const float* x;
  float* y;
  const float* grad_y;
  float* grad_x;
  std::size_t images;  // those in the lanes after them have no gradients
};

/// Up to kMaxBlocksAtOnce blocks: each weight is read from memory once for all of them. The bits are those of
/// one block after another.
using LinearBlocks = std::span<const LinearBlock>;

/// y = W·x + bias, then max(0, ·) if `relu`. bias [out] or nullptr.
extern const Kernel<void(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                         LinearBlocks blocks)>
    linear_forward;

/// grad_x = Wᵀ·grad_y.
extern const Kernel<void(const float* panels, std::size_t in, std::size_t out, LinearBlocks blocks)>
    linear_backward_input;

/// Σ grad_y · xᵀ over the images, in the layout of panels, and Σ grad_y, [out]: added to grad_panels and
/// grad_bias if `adds`, otherwise written to them. grad_bias may be nullptr.
extern const Kernel<void(std::size_t in, std::size_t out, LinearBlocks blocks, bool adds, float* grad_panels,
                         float* grad_bias)>
    linear_backward_weights;

// Pooling.

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

// Batch normalization, channel by channel. Arrays are dense, except that each function has one array with a
// layout: the one that a neighbouring convolution may want padded.
// Lanes from `images` on are not in the batch: they do not count, and their gradients are zero, both those
// that come in and those that go out.

/// Count, mean and sum of squared deviations of some values.
struct Moments {
  double count = 0, mean = 0, squares = 0;
};

/// Moments of one channel of a block: in [pixels][16]; only the first `images` lanes count.
extern const Kernel<Moments(const float* in, std::size_t pixels, std::size_t images)> channel_moments;

/// out = scale · in + shift, then max(0, ·) if `relu`. The layout is out's.
extern const Kernel<void(const float* in, const ImageLayout& layout, float scale, float shift, bool relu,
                         float* out)>
    scale_and_shift;

/// Σ grad and Σ grad · (in − mean). If `out` is not nullptr, grad is set to zero first where out, the output
/// of ReLU, is not above 0. The layout is out's.
struct GradientSums {
  double gradient = 0, product = 0;
};
extern const Kernel<GradientSums(const float* in, const float* out, const ImageLayout& layout, float mean,
                                 float* grad)>
    gradient_sums;

/// grad_in = gradient_factor · grad − deviation_factor · (in − mean) − constant. The layout is grad_in's.
struct NormalizationFactors {
  float gradient_factor, deviation_factor, mean, constant;
};
extern const Kernel<void(const float* in, const float* grad, const ImageLayout& layout, std::size_t images,
                         const NormalizationFactors& factors, float* grad_in)>
    normalization_gradient;

}  // namespace sweep::cpu
