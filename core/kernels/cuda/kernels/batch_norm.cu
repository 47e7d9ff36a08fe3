// Statistics and gradients are sums over the images · plane values of a channel. Grid of the run kernels:
// (channels, runs) blocks of 256 threads; a block reduces one run of values of one channel. Then a block
// per channel joins the runs in a tree. Their number, and so the bits, depend on the shapes alone. If devices
// share a batch, one thread per channel then joins the results of the shares.
#include "core/kernels/cuda/kernels/batch_norm.h"

#include "core/kernels/cuda/kernels/sum_order.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

int runs_of(const BatchNormShape& s, int images) {
  const int runs = ceil_div(images * s.plane, kValuesPerNormRun);
  return runs < 1 ? 1 : runs < kMaxNormRuns ? runs : kMaxNormRuns;
}

// Values begin … end − 1 of the images · plane values of a channel.
struct Run {
  int begin, end;
};

__device__ Run run_of_block(const BatchNormShape& s, int images) {
  const int count = images * s.plane, size = ceil_div(count, static_cast<int>(gridDim.y));
  const int begin = static_cast<int>(blockIdx.y) * size, end = begin + size;
  return {begin < count ? begin : count, end < count ? end : count};
}

__device__ int index_of(const BatchNormShape& s, int channel, int value) {
  return (value / s.plane * s.channels + channel) * s.plane + value % s.plane;
}

// The sum of f(index) over the run, added up by all threads of the block.
template <class Function>
__device__ float sum_over(const BatchNormShape& s, Run run, const Function& f) {
  const int channel = static_cast<int>(blockIdx.x);
  float sum = 0.0f;
  for (int value = run.begin + static_cast<int>(threadIdx.x); value < run.end;
       value += static_cast<int>(kThreads))
    sum += f(index_of(s, channel, value));
  return block_sum(sum);
}

// Writes for each run its mean and the sum of squared distances from it, [channels][runs] each. Two passes:
// a variance from sums of squares would cancel.
__global__ void run_statistics_kernel(BatchNormShape s, int images, const float* in, float* means,
                                      float* squares) {
  const Run run = run_of_block(s, images);
  const int count = run.end - run.begin;
  const float sum = sum_over(s, run, [=](int i) { return in[i]; });
  const float mean = count > 0 ? sum / static_cast<float>(count) : 0.0f;
  const float square = sum_over(s, run, [=](int i) { return (in[i] - mean) * (in[i] - mean); });
  if (threadIdx.x == 0) {
    means[blockIdx.x * gridDim.y + blockIdx.y] = mean;
    squares[blockIdx.x * gridDim.y + blockIdx.y] = square;
  }
}

// The mean of some values, and the sum of their squared distances from it.
struct Moments {
  double mean, square, seen;

  // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
  // (1979).
  __device__ Moments& operator+=(const Moments& other) {
    if (other.seen == 0) return *this;
    const double difference = other.mean - mean, all = seen + other.seen;
    square += other.square + difference * difference * seen * other.seen / all;
    mean += difference * other.seen / all;
    seen = all;
    return *this;
  }
};

// Of channel blockIdx.x: a thread takes a run.
__device__ Moments moments_of_runs(int total, int runs, const float* means, const float* squares) {
  static_assert(kMaxNormRuns <= kThreads);
  const int size = ceil_div(total, runs), run = static_cast<int>(threadIdx.x), left = total - run * size;
  Moments moments{0, 0, 0};
  if (run < runs && left > 0) {
    const int i = static_cast<int>(blockIdx.x) * runs + run;
    moments = {static_cast<double>(means[i]), static_cast<double>(squares[i]),
               static_cast<double>(left < size ? left : size)};
  }
  return block_sum(moments);
}

__device__ void write_statistics(const BatchNormShape& s, int c, const Moments& moments,
                                 const BatchNormArrays& to) {
  const auto mean = static_cast<float>(moments.mean);
  to.mean[c] = mean;
  to.inverse[c] = static_cast<float>(1 / sqrt(moments.square / moments.seen + static_cast<double>(s.eps)));
  to.running_mean[c] += s.momentum * (mean - to.running_mean[c]);
  if (moments.seen <= 1) return;  // The unbiased variance of a single value is undefined.
  const auto unbiased = static_cast<float>(moments.square / (moments.seen - 1));
  to.running_var[c] += s.momentum * (unbiased - to.running_var[c]);
}

__global__ void join_statistics_kernel(BatchNormShape s, int images, int runs, const float* means,
                                       const float* squares, BatchNormArrays to) {
  const Moments moments = moments_of_runs(images * s.plane, runs, means, squares);
  if (threadIdx.x == 0) write_statistics(s, static_cast<int>(blockIdx.x), moments, to);
}

// share: [channels] means, then [channels] sums of squared distances.
__global__ void share_statistics_kernel(BatchNormShape s, int images, int runs, const float* means,
                                        const float* squares, double* share) {
  const Moments moments = moments_of_runs(images * s.plane, runs, means, squares);
  if (threadIdx.x != 0) return;
  share[blockIdx.x] = moments.mean;
  share[s.channels + static_cast<int>(blockIdx.x)] = moments.square;
}

// shares: [sizes.count] of what share_statistics_kernel() has written.
__global__ void join_share_statistics_kernel(BatchNormShape s, ShareSizes sizes, const double* shares,
                                             BatchNormArrays to) {
  for_each_index(s.channels, [=](int c) {
    Moments moments{0, 0, 0};
    for (int share = 0; share < sizes.count; ++share) {
      const int images = sizes.of(share);
      if (images == 0) continue;
      const double* statistics = shares + static_cast<std::ptrdiff_t>(share) * 2 * s.channels;
      moments += {statistics[c], statistics[s.channels + c], static_cast<double>(images) * s.plane};
    }
    write_statistics(s, c, moments, to);
  });
}

__global__ void running_kernel(BatchNormShape s, BatchNormArrays to) {
  for_each_index(s.channels, [=](int c) {
    to.mean[c] = to.running_mean[c];
    to.inverse[c] = 1.0f / sqrtf(to.running_var[c] + s.eps);
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

// Writes for each run Σ grad_out and Σ grad_out · normalised input, [channels][runs] each.
__global__ void run_gradients_kernel(BatchNormShape s, int images, const float* in, const float* grad_out,
                                     const float* means, const float* inverses, float* sums,
                                     float* products) {
  const Run run = run_of_block(s, images);
  const float mean = means[blockIdx.x], inverse = inverses[blockIdx.x];
  const float sum = sum_over(s, run, [=](int i) { return grad_out[i]; });
  const float product = sum_over(s, run, [=](int i) { return grad_out[i] * ((in[i] - mean) * inverse); });
  if (threadIdx.x == 0) {
    sums[blockIdx.x * gridDim.y + blockIdx.y] = sum;
    products[blockIdx.x * gridDim.y + blockIdx.y] = product;
  }
}

// totals: [channels] Σ grad_out · normalised input, the gradient of the weight; then [channels] Σ grad_out,
// the gradient of the bias. The same goes to grad_parameters if the layer has parameters.
__global__ void join_gradients_kernel(int channels, int runs, const float* sums, const float* products,
                                      float* totals, float* grad_parameters) {
  const int c = static_cast<int>(blockIdx.x), run = static_cast<int>(threadIdx.x), i = c * runs + run;
  const float sum = block_sum(run < runs ? sums[i] : 0.0f),
              product = block_sum(run < runs ? products[i] : 0.0f);
  if (run != 0) return;
  totals[c] = product;
  totals[channels + c] = sum;
  if (grad_parameters == nullptr) return;
  grad_parameters[c] = product;
  grad_parameters[channels + c] = sum;
}

// shares: [sizes.count][count]; totals [count].
__global__ void join_share_gradients_kernel(ShareSizes sizes, int count, const float* shares, float* totals) {
  for_each_index(count, [=](int i) {
    float total = 0.0f;
    for (int share = 0; share < sizes.count; ++share) {
      if (sizes.of(share) > 0) total += shares[static_cast<std::ptrdiff_t>(share) * count + i];
    }
    totals[i] = total;
  });
}

// grad_in = weight · inverse · (grad_out − mean(grad_out) − normal · mean(grad_out · normal)).
__global__ void backward_kernel(BatchNormShape s, int images, const float* in, const float* grad_out,
                                const float* mean, const float* inverse, const float* weight,
                                const float* totals, float per_value, bool add, float* grad_in) {
  for_each_index(images * s.channels * s.plane, [=](int i) {
    const int c = i / s.plane % s.channels;
    const float normal = (in[i] - mean[c]) * inverse[c];
    const float factor = weight != nullptr ? weight[c] * inverse[c] : inverse[c];
    const float g = factor * (grad_out[i] - per_value * (totals[s.channels + c] + normal * totals[c]));
    grad_in[i] = add ? grad_in[i] + g : g;
  });
}

// The statistics of runs, for a kernel that joins them and writes to `to`.
template <class Kernel, class To>
void join_statistics(Stream& stream, Kernel kernel, const BatchNormShape& s, int images, const float* in,
                     float* scratch, const To& to) {
  const int runs = runs_of(s, images);
  float *means = scratch, *squares = scratch + s.channels * runs;
  launch(stream, run_statistics_kernel, {static_cast<unsigned>(s.channels), static_cast<unsigned>(runs)},
         {kThreads}, s, images, in, means, squares);
  launch(stream, kernel, {static_cast<unsigned>(s.channels)}, {kThreads}, s, images, runs, means, squares,
         to);
}

}  // namespace

int batch_norm_scratch_floats(const BatchNormShape& s, int images) {
  return 2 * s.channels * runs_of(s, images);
}

void batch_norm_statistics(Stream& stream, const BatchNormShape& s, int images, const float* in,
                           float* scratch, const BatchNormArrays& arrays) {
  join_statistics(stream, join_statistics_kernel, s, images, in, scratch, arrays);
}

void batch_norm_share_statistics(Stream& stream, const BatchNormShape& s, int images, const float* in,
                                 float* scratch, double* share) {
  join_statistics(stream, share_statistics_kernel, s, images, in, scratch, share);
}

void batch_norm_join_statistics(Stream& stream, const BatchNormShape& s, const ShareSizes& sizes,
                                const double* shares, const BatchNormArrays& arrays) {
  launch(stream, join_share_statistics_kernel, blocks_for(s.channels), {kThreads}, s, sizes, shares, arrays);
}

void batch_norm_running(Stream& stream, const BatchNormShape& s, const BatchNormArrays& arrays) {
  launch(stream, running_kernel, blocks_for(s.channels), {kThreads}, s, arrays);
}

void batch_norm_forward(Stream& stream, const BatchNormShape& s, int images, const float* in,
                        const BatchNormArrays& arrays, const float* weight, const float* bias, float* out) {
  const int count = images * s.channels * s.plane;
  launch(stream, forward_kernel, blocks_for(count), {kThreads}, s, count, in, arrays.mean, arrays.inverse,
         weight, bias, out);
}

void batch_norm_sum_gradients(Stream& stream, const BatchNormShape& s, int images, const float* in,
                              const float* grad_out, const BatchNormArrays& arrays, float* scratch,
                              float* totals, float* grad_parameters) {
  const int runs = runs_of(s, images);
  float *sums = scratch, *products = sums + s.channels * runs;
  launch(stream, run_gradients_kernel, {static_cast<unsigned>(s.channels), static_cast<unsigned>(runs)},
         {kThreads}, s, images, in, grad_out, arrays.mean, arrays.inverse, sums, products);
  launch(stream, join_gradients_kernel, {static_cast<unsigned>(s.channels)}, {kThreads}, s.channels, runs,
         sums, products, totals, grad_parameters);
}

void batch_norm_join_gradients(Stream& stream, const BatchNormShape& s, const ShareSizes& sizes,
                               const float* shares, float* totals) {
  launch(stream, join_share_gradients_kernel, blocks_for(2 * s.channels), {kThreads}, sizes, 2 * s.channels,
         shares, totals);
}

void batch_norm_backward(Stream& stream, const BatchNormShape& s, int images, std::int64_t batch_images,
                         const float* in, const float* grad_out, const BatchNormArrays& arrays,
                         const float* weight, const float* totals, bool add, float* grad_in) {
  const float per_value = 1.0f / static_cast<float>(batch_images * s.plane);
  launch(stream, backward_kernel, blocks_for(images * s.channels * s.plane), {kThreads}, s, images, in,
         grad_out, arrays.mean, arrays.inverse, weight, totals, per_value, add, grad_in);
}

}  // namespace sweep::cuda
