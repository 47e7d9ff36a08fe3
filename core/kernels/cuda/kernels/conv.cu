// Convolutions as products (see product.h): implicit GEMM.
#include "core/kernels/cuda/kernels/conv.h"

#include "core/kernels/cuda/kernels/product.h"
#include "core/kernels/cuda/runtime/divisor.h"

namespace sweep::cuda {
namespace {

// What an index of a product stands for: an offset in an array, and a row and a column. An element of the
// input is where a window and a tap add up to.
struct Position {
  int offset, y, x;
};

// Decodes the indices of products, with divisors made on the host.
struct Indices {
  explicit Indices(const ConvShape& s)
      : shape(s),
        kernel(s.kernel_height * s.kernel_width),
        kernel_width(s.kernel_width),
        in_plane(s.in_height * s.in_width),
        in_width(s.in_width),
        out_plane(s.out_height * s.out_width),
        out_width(s.out_width),
        stride_y(s.stride_y),
        stride_x(s.stride_x) {}

  // n = [channel][kernel y][kernel x] → channel · plane, and the tap's distance from the window's corner.
  __device__ Position tap(int n, int plane) const {
    const auto [channel, position] = kernel.divide(n);
    const auto [y, x] = kernel_width.divide(position);
    return {channel * plane, y * shape.dilation_y, x * shape.dilation_x};
  }
  // n = [image][y][x] of the output → the image's offset in the input, and the corner of the window.
  __device__ Position window(int n) const {
    const auto [image, position] = out_plane.divide(n);
    const auto [y, x] = out_width.divide(position);
    return {image * shape.in_channels * shape.in_height * shape.in_width, y * shape.stride_y - shape.pad_y,
            x * shape.stride_x - shape.pad_x};
  }

  // The input at a window's tap: zero in the padding.
  __device__ float input(const float* in, Position window, Position tap) const {
    const int y = window.y + tap.y, x = window.x + tap.x;
    if (y < 0 || y >= shape.in_height || x < 0 || x >= shape.in_width) return 0.0f;
    return in[window.offset + tap.offset + y * shape.in_width + x];
  }

  ConvShape shape;
  Divisor kernel, kernel_width, in_plane, in_width, out_plane, out_width, stride_y, stride_x;
};

// C: [output channels of a group][images, positions of the output], k: taps. A slice per group. A is the
// weight.
struct Forward {
  using Row = int;
  using Column = Position;
  using Depth = Position;
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = false;
  Indices indices;
  const float *in, *weight, *bias;
  float* out;
  bool relu;
  int rows, columns, slices, taps, in_plane;

  __device__ SumRange range(int /*group*/) const { return {0, taps}; }
  __device__ Row row(int group, int m) const { return (group * rows + m) * taps; }
  __device__ Column column(int group, int n) const {
    Position window = indices.window(n);
    window.offset += group * (indices.shape.in_channels / indices.shape.groups) * in_plane;
    return window;
  }
  __device__ Depth a_depth(int k) const { return {k, 0, 0}; }
  __device__ Depth b_depth(int k) const { return indices.tap(k, in_plane); }
  __device__ float a(Row m, Depth k) const { return weight[m + k.offset]; }
  __device__ float b(Depth k, const Column& n) const { return indices.input(in, n, k); }
  __device__ void store(int group, int m, int n, float sum) const {
    const ConvShape& s = indices.shape;
    const int channel = group * rows + m;
    if (bias != nullptr) sum += bias[channel];
    // as PyTorch: relu keeps a NaN
    if (relu && sum <= 0.0f) sum = 0.0f;
    const auto [image, position] = indices.out_plane.divide(n);
    out[(image * s.out_channels + channel) * s.out_height * s.out_width + position] = sum;
  }
};

// C: [output channels of a group][taps, then one column for the bias, where B is 1], k: images and positions
// of the output. Slices: [of the sums][groups]. A is grad_out.
struct BackwardWeights {
  using Row = int;
  using Column = Position;
  using Depth = Position;
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = true;
  static constexpr int kBias = -1;  // offset of the column that is 1 everywhere
  Indices indices;
  const float *in, *grad_out;
  float* gradient;
  int rows, columns, slices, taps, positions, sum_slices, weights, gradient_floats, in_plane, out_plane;

  __device__ SumRange range(int slice) const {
    return slice_of(positions, sum_slices, slice / indices.shape.groups);
  }
  __device__ Row row(int slice, int m) const { return (slice % indices.shape.groups * rows + m) * out_plane; }
  __device__ Column column(int slice, int n) const {
    if (n == taps) return {kBias, 0, 0};
    Position tap = indices.tap(n, in_plane);
    tap.offset +=
        slice % indices.shape.groups * (indices.shape.in_channels / indices.shape.groups) * in_plane;
    return tap;
  }
  __device__ Depth a_depth(int k) const {
    const auto [image, position] = indices.out_plane.divide(k);
    return {image * indices.shape.out_channels * out_plane + position, 0, 0};
  }
  __device__ Depth b_depth(int k) const { return indices.window(k); }
  __device__ float a(Row m, Depth k) const { return grad_out[m + k.offset]; }
  __device__ float b(Depth k, const Column& n) const {
    return n.offset == kBias ? 1.0f : indices.input(in, k, n);
  }
  __device__ void store(int slice, int m, int n, float sum) const {
    const int channel = slice % indices.shape.groups * rows + m;
    float* to = gradient + static_cast<std::ptrdiff_t>(slice / indices.shape.groups) * gradient_floats;
    to[n == taps ? weights + channel : channel * taps + n] = sum;
  }
};

// C: [input channels of a group][images, positions of the input], k: output channels of the group and kernel
// taps. A is the weight; B is the grad_out whose window has the input at the tap, 0 where the stride skips
// it.
struct BackwardInput {
  using Row = int;
  using Column = Position;
  using Depth = Position;
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = false;
  Indices indices;
  const float *grad_out, *weight;
  float* grad_in;
  bool add;
  int rows, columns, slices, products, group_out, kernel, out_plane;

  __device__ SumRange range(int /*group*/) const { return {0, products}; }
  __device__ Row row(int group, int m) const { return (group * group_out * rows + m) * kernel; }
  __device__ Column column(int group, int n) const {
    const ConvShape& s = indices.shape;
    const auto [image, position] = indices.in_plane.divide(n);
    const auto [y, x] = indices.in_width.divide(position);
    return {(image * s.out_channels + group * group_out) * out_plane, y + s.pad_y, x + s.pad_x};
  }
  __device__ Depth a_depth(int k) const {
    const auto [channel, position] = indices.kernel.divide(k);
    return {channel * rows * kernel + position, 0, 0};
  }
  __device__ Depth b_depth(int k) const { return indices.tap(k, out_plane); }
  __device__ float a(Row m, Depth k) const { return weight[m + k.offset]; }
  __device__ float b(Depth k, const Column& n) const {
    const int y = n.y - k.y, x = n.x - k.x;
    if (y < 0 || x < 0) return 0.0f;
    const auto [out_y, off_y] = indices.stride_y.divide(y);
    const auto [out_x, off_x] = indices.stride_x.divide(x);
    if (off_y != 0 || off_x != 0 || out_y >= indices.shape.out_height || out_x >= indices.shape.out_width)
      return 0.0f;
    return grad_out[n.offset + k.offset + out_y * indices.shape.out_width + out_x];
  }
  __device__ void store(int group, int m, int n, float sum) const {
    const ConvShape& s = indices.shape;
    const auto [image, position] = indices.in_plane.divide(n);
    float& result = grad_in[(image * s.in_channels + group * rows + m) * s.in_height * s.in_width + position];
    result = add ? result + sum : sum;
  }
};

}  // namespace

void conv_forward(Stream& stream, const ConvShape& s, int images, const float* in, const float* weight,
                  const float* bias, bool relu, float* out) {
  launch_product(stream, Forward{.indices = Indices(s),
                                 .in = in,
                                 .weight = weight,
                                 .bias = bias,
                                 .out = out,
                                 .relu = relu,
                                 .rows = s.group_out(),
                                 .columns = images * s.out_height * s.out_width,
                                 .slices = s.groups,
                                 .taps = s.taps(),
                                 .in_plane = s.in_height * s.in_width});
}

int conv_gradient_slices(const ConvShape& s, int images) {
  return sum_slices(s.out_channels, s.taps() + (s.bias ? 1 : 0),
                    static_cast<std::int64_t>(images) * s.out_height * s.out_width);
}

void conv_backward_weights(Stream& stream, const ConvShape& s, int images, int slices, const float* in,
                           const float* grad_out, float* gradient) {
  // sum_slices() rounds up the number of small tiles
  launch_product(stream,
                 BackwardWeights{.indices = Indices(s),
                                 .in = in,
                                 .grad_out = grad_out,
                                 .gradient = gradient,
                                 .rows = s.group_out(),
                                 .columns = s.taps() + (s.bias ? 1 : 0),
                                 .slices = slices * s.groups,
                                 .taps = s.taps(),
                                 .positions = images * s.out_height * s.out_width,
                                 .sum_slices = slices,
                                 .weights = s.weights(),
                                 .gradient_floats = s.gradient_floats(),
                                 .in_plane = s.in_height * s.in_width,
                                 .out_plane = s.out_height * s.out_width},
                 2 * kConvGradientBlocks);
}

void conv_backward_input(Stream& stream, const ConvShape& s, int images, const float* grad_out,
                         const float* weight, bool add, float* grad_in) {
  launch_product(stream, BackwardInput{.indices = Indices(s),
                                       .grad_out = grad_out,
                                       .weight = weight,
                                       .grad_in = grad_in,
                                       .add = add,
                                       .rows = s.group_in(),
                                       .columns = images * s.in_height * s.in_width,
                                       .slices = s.groups,
                                       .products = s.group_out() * s.kernel_height * s.kernel_width,
                                       .group_out = s.group_out(),
                                       .kernel = s.kernel_height * s.kernel_width,
                                       .out_plane = s.out_height * s.out_width});
}

}  // namespace sweep::cuda
