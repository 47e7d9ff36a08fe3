// Statistics and gradients are sums over the images · plane values of a channel. Grid of the part kernels:
// (channels, parts) blocks of 256 threads; a block reduces one part of one channel. Then one thread per
// channel joins the parts in order. The number of parts depends on the shapes alone, so the bits do, too.
#include "core/kernels/cuda/kernels/batch_norm.h"

#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

constexpr int kValuesPerPart = 8 * static_cast<int>(kThreads);
constexpr int kMaxParts = 64;

int parts_of(const BatchNormShape& s, int images) {
  const int parts = ceil_div(images * s.plane, kValuesPerPart);
  return parts < 1 ? 1 : parts < kMaxParts ? parts : kMaxParts;
}

// Values begin … end − 1 of the images · plane values of a channel.
struct Part {
  int begin, end;
};

__device__ Part part_of_block(const BatchNormShape& s, int images) {
  const int count = images * s.plane, size = ceil_div(count, static_cast<int>(gridDim.y));
  const int begin = static_cast<int>(blockIdx.y) * size, end = begin + size;
  return {begin < count ? begin : count, end < count ? end : count};
}

__device__ int index_of(const BatchNormShape& s, int channel, int value) {
  return (value / s.plane * s.channels + channel) * s.plane + value % s.plane;
}

// The sum of f(index) over the part, added up by all threads of the block.
template <class Function>
__device__ float sum_over(const BatchNormShape& s, Part part, const Function& f) {
  const int channel = static_cast<int>(blockIdx.x);
  float sum = 0.0f;
  for (int value = part.begin + static_cast<int>(threadIdx.x); value < part.end;
       value += static_cast<int>(kThreads))
    sum += f(index_of(s, channel, value));
  return block_sum(sum);
}

// Writes for each part its mean and the sum of squared distances from it, [channels][parts] each. Two passes:
// a variance from sums of squares would cancel.
__global__ void part_statistics_kernel(BatchNormShape s, int images, const float* in, float* means,
                                       float* squares) {
  const Part part = part_of_block(s, images);
  const int count = part.end - part.begin;
  const float sum = sum_over(s, part, [=](int i) { return in[i]; });
  const float mean = count > 0 ? sum / static_cast<float>(count) : 0.0f;
  const float square = sum_over(s, part, [=](int i) { return (in[i] - mean) * (in[i] - mean); });
  if (threadIdx.x == 0) {
    means[blockIdx.x * gridDim.y + blockIdx.y] = mean;
    squares[blockIdx.x * gridDim.y + blockIdx.y] = square;
  }
}

__global__ void join_statistics_kernel(BatchNormShape s, int images, int parts, const float* means,
                                       const float* squares, float* mean_out, float* inverse,
                                       float* running_mean, float* running_var) {
  const int total = images * s.plane, size = ceil_div(total, parts);
  for_each_index(s.channels, [=](int c) {
    // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
    // (1979).
    double mean = 0, square = 0, seen = 0;
    for (int part = 0; part < parts; ++part) {
      const int left = total - part * size;
      const double count = left < size ? left : size;
      if (count <= 0) break;
      const double difference = static_cast<double>(means[c * parts + part]) - mean, all = seen + count;
      square += static_cast<double>(squares[c * parts + part]) + difference * difference * seen * count / all;
      mean += difference * count / all;
      seen = all;
    }
    mean_out[c] = static_cast<float>(mean);
    inverse[c] = static_cast<float>(1 / sqrt(square / seen + static_cast<double>(s.eps)));
    const auto unbiased = static_cast<float>(square / (seen > 1 ? seen - 1 : 1));
    running_mean[c] += s.momentum * (static_cast<float>(mean) - running_mean[c]);
    running_var[c] += s.momentum * (unbiased - running_var[c]);
  });
}

__global__ void running_kernel(BatchNormShape s, const float* running_mean, const float* running_var,
                               float* mean, float* inverse) {
  for_each_index(s.channels, [=](int c) {
    mean[c] = running_mean[c];
    inverse[c] = 1.0f / sqrtf(running_var[c] + s.eps);
  });
}

__global__ void forward_kernel(BatchNormShape s, int count, const float* in, const float* mean,
                               const float* inverse, const float* weight, const float* bias, float* out) {
  for_each_index(count, [=](int i) {
    const int c = i / s.plane % s.channels;
    const float normal = (in[i] - mean[c]) * inverse[c];
    out[i] = weight != nullptr ? normal * weight[c] + bias[c] : normal;
  });
}

// Writes for each part Σ grad_out and Σ grad_out · normalised input, [channels][parts] each.
__global__ void part_gradients_kernel(BatchNormShape s, int images, const float* in, const float* grad_out,
                                      const float* means, const float* inverses, float* sums,
                                      float* products) {
  const Part part = part_of_block(s, images);
  const float mean = means[blockIdx.x], inverse = inverses[blockIdx.x];
  const float sum = sum_over(s, part, [=](int i) { return grad_out[i]; });
  const float product = sum_over(s, part, [=](int i) { return grad_out[i] * ((in[i] - mean) * inverse); });
  if (threadIdx.x == 0) {
    sums[blockIdx.x * gridDim.y + blockIdx.y] = sum;
    products[blockIdx.x * gridDim.y + blockIdx.y] = product;
  }
}

// totals: [channels] Σ grad_out · normalised input, the gradient of the weight; then [channels] Σ grad_out,
// the gradient of the bias. The same goes to grad_parameters if the layer has parameters.
__global__ void join_gradients_kernel(int channels, int parts, const float* sums, const float* products,
                                      float* totals, float* grad_parameters) {
  for_each_index(channels, [=](int c) {
    float sum = 0.0f, product = 0.0f;
    for (int part = 0; part < parts; ++part) {
      sum += sums[c * parts + part];
      product += products[c * parts + part];
    }
    totals[c] = product;
    totals[channels + c] = sum;
    if (grad_parameters != nullptr) {
      grad_parameters[c] = product;
      grad_parameters[channels + c] = sum;
    }
  });
}

// grad_in = weight · inverse · (grad_out − mean(grad_out) − normal · mean(grad_out · normal)).
__global__ void backward_kernel(BatchNormShape s, int images, const float* in, const float* grad_out,
                                const float* mean, const float* inverse, const float* weight,
                                const float* totals, bool add, float* grad_in) {
  const float per_value = 1.0f / static_cast<float>(images * s.plane);
  for_each_index(images * s.channels * s.plane, [=](int i) {
    const int c = i / s.plane % s.channels;
    const float normal = (in[i] - mean[c]) * inverse[c];
    const float factor = weight != nullptr ? weight[c] * inverse[c] : inverse[c];
    const float g = factor * (grad_out[i] - per_value * (totals[s.channels + c] + normal * totals[c]));
    grad_in[i] = add ? grad_in[i] + g : g;
  });
}

}  // namespace

int batch_norm_scratch_floats(const BatchNormShape& s, int images) {
  return 2 * s.channels * parts_of(s, images) + 2 * s.channels;
}

void batch_norm_statistics(Stream& stream, const BatchNormShape& s, int images, const float* in,
                           float* scratch, float* mean, float* inverse, float* running_mean,
                           float* running_var) {
  const int parts = parts_of(s, images);
  float *means = scratch, *squares = scratch + s.channels * parts;
  launch(stream, part_statistics_kernel, {static_cast<unsigned>(s.channels), static_cast<unsigned>(parts)},
         {kThreads}, s, images, in, means, squares);
  launch(stream, join_statistics_kernel, blocks_for(s.channels), {kThreads}, s, images, parts, means, squares,
         mean, inverse, running_mean, running_var);
}

void batch_norm_running(Stream& stream, const BatchNormShape& s, const float* running_mean,
                        const float* running_var, float* mean, float* inverse) {
  launch(stream, running_kernel, blocks_for(s.channels), {kThreads}, s, running_mean, running_var, mean,
         inverse);
}

void batch_norm_forward(Stream& stream, const BatchNormShape& s, int images, const float* in,
                        const float* mean, const float* inverse, const float* weight, const float* bias,
                        float* out) {
  const int count = images * s.channels * s.plane;
  launch(stream, forward_kernel, blocks_for(count), {kThreads}, s, count, in, mean, inverse, weight, bias,
         out);
}

void batch_norm_backward(Stream& stream, const BatchNormShape& s, int images, const float* in,
                         const float* grad_out, const float* mean, const float* inverse, const float* weight,
                         float* scratch, float* grad_parameters, bool add, float* grad_in) {
  const int parts = parts_of(s, images);
  float *sums = scratch, *products = sums + s.channels * parts, *totals = products + s.channels * parts;
  launch(stream, part_gradients_kernel, {static_cast<unsigned>(s.channels), static_cast<unsigned>(parts)},
         {kThreads}, s, images, in, grad_out, mean, inverse, sums, products);
  launch(stream, join_gradients_kernel, blocks_for(s.channels), {kThreads}, s.channels, parts, sums, products,
         totals, grad_parameters);
  if (grad_in == nullptr) return;
  launch(stream, backward_kernel, blocks_for(images * s.channels * s.plane), {kThreads}, s, images, in,
         grad_out, mean, inverse, weight, totals, add, grad_in);
}

}  // namespace sweep::cuda
