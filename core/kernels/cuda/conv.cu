#include "core/kernels/cuda/conv.h"

#include "core/kernels/cuda/product.h"

namespace sweep::cuda {
namespace {

struct Tap {
  int channel, y, x;  // of the kernel; the channel within its group
};

__device__ Tap tap_of(const ConvShape& s, int k) {
  return {k / (s.kernel_height * s.kernel_width), k / s.kernel_width % s.kernel_height, k % s.kernel_width};
}

struct Place {
  int image, y, x;
};

__device__ Place place_of(int height, int width, int n) {
  return {n / (height * width), n / width % height, n % width};
}

// The input that tap `tap` of the output at `out` sees: zero in the padding.
__device__ float input_at(const ConvShape& s, const float* in, int group, Place out, Tap tap) {
  const int y = out.y * s.stride_y - s.pad_y + tap.y * s.dilation_y,
            x = out.x * s.stride_x - s.pad_x + tap.x * s.dilation_x;
  if (y < 0 || y >= s.in_height || x < 0 || x >= s.in_width) return 0.0f;
  const int channel = group * (s.in_channels / s.groups) + tap.channel;
  return in[((out.image * s.in_channels + channel) * s.in_height + y) * s.in_width + x];
}

// C: [a group's output channels][images, places of the output], k: taps. A slice per group.
struct Forward {
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = false;
  ConvShape s;
  const float *in, *weight, *bias;
  float* out;
  bool relu;
  int rows, columns, slices, taps;

  __device__ SumRange range(int /*group*/) const { return {0, taps}; }
  __device__ float a(int group, int m, int k) const { return weight[(group * rows + m) * taps + k]; }
  __device__ float b(int group, int k, int n) const {
    return input_at(s, in, group, place_of(s.out_height, s.out_width, n), tap_of(s, k));
  }
  __device__ void store(int group, int m, int n, float sum) const {
    const int channel = group * rows + m, plane = s.out_height * s.out_width;
    if (bias != nullptr) sum += bias[channel];
    // As PyTorch's relu: a NaN stays one.
    if (relu && sum <= 0.0f) sum = 0.0f;
    out[(n / plane * s.out_channels + channel) * plane + n % plane] = sum;
  }
};

// C: [a group's output channels][taps, and one column for the bias], k: images and places of the output.
// Slices: parts of the sums, and in each the groups.
struct BackwardWeights {
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = true;
  ConvShape s;
  const float *in, *grad_out;
  float* gradient;
  int rows, columns, slices, taps, places, parts, weights, gradient_floats;

  __device__ SumRange range(int slice) const { return part_of(places, parts, slice / s.groups); }
  __device__ float a(int slice, int m, int k) const {
    const int channel = slice % s.groups * rows + m, plane = s.out_height * s.out_width;
    return grad_out[(k / plane * s.out_channels + channel) * plane + k % plane];
  }
  __device__ float b(int slice, int k, int n) const {
    if (n == taps) return 1.0f;
    return input_at(s, in, slice % s.groups, place_of(s.out_height, s.out_width, k), tap_of(s, n));
  }
  __device__ void store(int slice, int m, int n, float sum) const {
    const int channel = slice % s.groups * rows + m;
    float* part = gradient + static_cast<std::ptrdiff_t>(slice / s.groups) * gradient_floats;
    part[n == taps ? weights + channel : channel * taps + n] = sum;
  }
};

// C: [a group's input channels][images, places of the input], k: the group's output channels and the kernel.
struct BackwardInput {
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = false;
  ConvShape s;
  const float *grad_out, *weight;
  float* grad_in;
  bool add;
  int rows, columns, slices, products, group_out;

  __device__ SumRange range(int /*group*/) const { return {0, products}; }
  __device__ float a(int group, int m, int k) const {
    const int kernel = s.kernel_height * s.kernel_width;
    return weight[((group * group_out + k / kernel) * rows + m) * kernel + k % kernel];
  }
  __device__ float b(int group, int k, int n) const {
    const Tap tap = tap_of(s, k);  // its channel is one of the output
    const Place place = place_of(s.in_height, s.in_width, n);
    const int y = place.y + s.pad_y - tap.y * s.dilation_y, x = place.x + s.pad_x - tap.x * s.dilation_x;
    if (y < 0 || x < 0 || y % s.stride_y != 0 || x % s.stride_x != 0) return 0.0f;
    const int out_y = y / s.stride_y, out_x = x / s.stride_x;
    if (out_y >= s.out_height || out_x >= s.out_width) return 0.0f;
    const int channel = group * group_out + tap.channel;
    return grad_out[((place.image * s.out_channels + channel) * s.out_height + out_y) * s.out_width + out_x];
  }
  __device__ void store(int group, int m, int n, float sum) const {
    const int channel = group * rows + m, plane = s.in_height * s.in_width;
    float& at = grad_in[(n / plane * s.in_channels + channel) * plane + n % plane];
    at = add ? at + sum : sum;
  }
};

}  // namespace

void conv_forward(Stream& stream, const ConvShape& s, int images, const float* in, const float* weight,
                  const float* bias, bool relu, float* out) {
  launch_product(stream, Forward{.s = s,
                                 .in = in,
                                 .weight = weight,
                                 .bias = bias,
                                 .out = out,
                                 .relu = relu,
                                 .rows = s.group_out(),
                                 .columns = images * s.out_height * s.out_width,
                                 .slices = s.groups,
                                 .taps = s.taps()});
}

int conv_gradient_parts(const ConvShape& s, int images) {
  return sum_parts(s.out_channels, s.taps() + (s.bias ? 1 : 0),
                   static_cast<std::int64_t>(images) * s.out_height * s.out_width);
}

void conv_backward_weights(Stream& stream, const ConvShape& s, int images, int parts, const float* in,
                           const float* grad_out, float* gradient) {
  launch_product(stream, BackwardWeights{.s = s,
                                         .in = in,
                                         .grad_out = grad_out,
                                         .gradient = gradient,
                                         .rows = s.group_out(),
                                         .columns = s.taps() + (s.bias ? 1 : 0),
                                         .slices = parts * s.groups,
                                         .taps = s.taps(),
                                         .places = images * s.out_height * s.out_width,
                                         .parts = parts,
                                         .weights = s.weights(),
                                         .gradient_floats = s.gradient_floats()});
}

void conv_backward_input(Stream& stream, const ConvShape& s, int images, const float* grad_out,
                         const float* weight, bool add, float* grad_in) {
  launch_product(stream, BackwardInput{.s = s,
                                       .grad_out = grad_out,
                                       .weight = weight,
                                       .grad_in = grad_in,
                                       .add = add,
                                       .rows = s.group_in(),
                                       .columns = images * s.in_height * s.in_width,
                                       .slices = s.groups,
                                       .products = s.group_out() * s.kernel_height * s.kernel_width,
                                       .group_out = s.group_out()});
}

}  // namespace sweep::cuda
