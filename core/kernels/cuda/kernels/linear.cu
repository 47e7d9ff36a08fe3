// Linear layers as products (see product.h); which index of C and k is what is said above each Problem.
#include "core/kernels/cuda/kernels/linear.h"

#include "core/kernels/cuda/kernels/product.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {
namespace {

using Offset = int;  // of a row or column from the start of its array, in floats

// out = in · weightᵀ. C: [images][outputs], k: inputs.
struct Forward {
  using Row = Offset;
  using Column = Offset;
  using Depth = Offset;
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = true;
  const float *in, *weight, *bias;
  float* out;
  bool relu;
  int rows, columns, slices, in_features;

  __device__ SumRange range(int /*slice*/) const { return {0, in_features}; }
  __device__ Row row(int /*slice*/, int m) const { return m * in_features; }
  __device__ Column column(int /*slice*/, int n) const { return n * in_features; }
  __device__ Depth a_depth(int k) const { return k; }
  __device__ Depth b_depth(int k) const { return k; }
  __device__ float a(Row m, Depth k) const { return in[m + k]; }
  __device__ float b(Depth k, Column n) const { return weight[n + k]; }
  __device__ void store(int /*slice*/, int m, int n, float sum) const {
    if (bias != nullptr) sum += bias[n];
    // as PyTorch: relu keeps a NaN
    if (relu && sum <= 0.0f) sum = 0.0f;
    out[m * columns + n] = sum;
  }
};

// gradient = grad_outᵀ · in. C: [outputs][inputs, then one column for the bias, where B is 1], k: images.
// Slices share out each sum.
struct BackwardWeights {
  using Row = Offset;
  using Column = Offset;
  using Depth = Offset;
  static constexpr bool kARowsAlongK = false, kBColumnsAlongK = false;
  const float *in, *grad_out;
  float* gradient;
  int rows, columns, slices, images, in_features, weights, gradient_floats;

  __device__ SumRange range(int slice) const { return slice_of(images, slices, slice); }
  __device__ Row row(int /*slice*/, int m) const { return m; }
  __device__ Column column(int /*slice*/, int n) const { return n; }
  __device__ Depth a_depth(int k) const { return k * rows; }
  __device__ Depth b_depth(int k) const { return k * in_features; }
  __device__ float a(Row m, Depth k) const { return grad_out[k + m]; }
  __device__ float b(Depth k, Column n) const { return n == in_features ? 1.0f : in[k + n]; }
  __device__ void store(int slice, int m, int n, float sum) const {
    float* to = gradient + static_cast<std::ptrdiff_t>(slice) * gradient_floats;
    to[n == in_features ? weights + m : m * in_features + n] = sum;
  }
};

// grad_in = grad_out · weight. C: [images][inputs], k: outputs.
struct BackwardInput {
  using Row = Offset;
  using Column = Offset;
  using Depth = Offset;
  static constexpr bool kARowsAlongK = true, kBColumnsAlongK = false;
  const float *grad_out, *weight;
  float* grad_in;
  bool add;
  int rows, columns, slices, out_features;

  __device__ SumRange range(int /*slice*/) const { return {0, out_features}; }
  __device__ Row row(int /*slice*/, int m) const { return m * out_features; }
  __device__ Column column(int /*slice*/, int n) const { return n; }
  __device__ Depth a_depth(int k) const { return k; }
  __device__ Depth b_depth(int k) const { return k * columns; }
  __device__ float a(Row m, Depth k) const { return grad_out[m + k]; }
  __device__ float b(Depth k, Column n) const { return weight[k + n]; }
  __device__ void store(int /*slice*/, int m, int n, float sum) const {
    float& result = grad_in[m * columns + n];
    result = add ? result + sum : sum;
  }
};

// 12.6 KiB for 128 threads.
using GradientTile = Tile<64, 32, 16, 4, 4>;

BackwardWeights backward_weights(const LinearGradient& layer, int images, int slices) {
  const LinearShape& s = layer.shape;
  return {.in = layer.in,
          .grad_out = layer.grad_out,
          .gradient = layer.gradient,
          .rows = s.out_features,
          .columns = s.in_features + (s.bias ? 1 : 0),
          .slices = slices,
          .images = images,
          .in_features = s.in_features,
          .weights = s.weights(),
          .gradient_floats = s.gradient_floats()};
}

// Calls compute(first, count) for as many images at once as a grid has tiles down, 65535.
template <class Compute>
void for_images(int images, const Compute& compute) {
  constexpr int kMax = 65535 * LargeTile::kRows;
  for (int first = 0; first < images; first += kMax)
    compute(first, images - first < kMax ? images - first : kMax);
}

}  // namespace

void linear_forward(Stream& stream, const LinearShape& s, int images, const float* in, const float* weight,
                    const float* bias, bool relu, float* out) {
  for_images(images, [&](int first, int count) {
    launch_product(stream, Forward{.in = in + first * s.in_features,
                                   .weight = weight,
                                   .bias = bias,
                                   .out = out + first * s.out_features,
                                   .relu = relu,
                                   .rows = count,
                                   .columns = s.out_features,
                                   .slices = 1,
                                   .in_features = s.in_features});
  });
}

int linear_gradient_slices(std::span<const LinearShape> shapes, int images) {
  std::int64_t tiles = 0;
  for (const LinearShape& s : shapes)
    tiles += static_cast<std::int64_t>(ceil_div(s.out_features, GradientTile::kRows)) *
             ceil_div(s.in_features + (s.bias ? 1 : 0), GradientTile::kColumns);
  const int most = ceil_div(images, static_cast<int>(kLeastProductsPerSlice)),
            wanted = static_cast<int>((kLinearGradientBlocks + tiles - 1) / tiles);
  return most < 1 ? 1 : most < wanted ? most : wanted;
}

void linear_backward_weights(Stream& stream, std::span<const LinearGradient> layers, int images, int slices) {
  using Products = ProductsKernel<GradientTile, BackwardWeights, kMaxGradients>;
  Products products;
  for (const LinearGradient& layer : layers) products.add(backward_weights(layer, images, slices));
  launch_functor(stream, products, {static_cast<unsigned>(products.blocks)}, {{Products::kMaxThreads}});
}

void linear_backward_input(Stream& stream, const LinearShape& s, int images, const float* grad_out,
                           const float* weight, bool add, float* grad_in) {
  for_images(images, [&](int first, int count) {
    launch_product(stream, BackwardInput{.grad_out = grad_out + first * s.out_features,
                                         .weight = weight,
                                         .grad_in = grad_in + first * s.in_features,
                                         .add = add,
                                         .rows = count,
                                         .columns = s.in_features,
                                         .slices = 1,
                                         .out_features = s.out_features});
  });
}

}  // namespace sweep::cuda
