// The forward kernel of conv_pool.h, and a part of others.
//
// Grid: up to kResidentConvBlocks blocks of 512 threads. A block loads the weights of all convolutions to
// shared memory once, and then takes images in turns: image blockIdx.x, blockIdx.x + gridDim.x, … For each
// image it loads the padded input, and runs the convolutions one after the other; the pooled output of one is
// written straight into the padded input of the next. No block reads what another writes, so results do not
// depend on the number of blocks.
//
// A task of one convolution is one pooled output position for kTaskChannels output channels: the thread
// computes the four convolution outputs of the 2×2 window for each of the channels in registers (8 sums), so
// one read of an input serves several products. If a layer has fewer tasks than the block has threads, the
// sum over the input channels is split among several threads, which leave their sums in shared memory; one of
// them adds them up in order.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/kernels/conv_pool_geometry.h"

namespace sweep::cuda::conv_pool {

using Geometry = ConvPoolGeometry;

constexpr int kTaskChannels = 2;  // output channels per task
constexpr int kWindow = 4;        // convolution outputs that are pooled to one

// How the threads divide one convolution: [splits][channel_groups][pooled positions] tasks.
struct Tiling {
  Tiling() = default;
  explicit Tiling(const Geometry& g)
      : channel_groups(ceil_div(g.shape.out_channels, kTaskChannels)),
        split_channels(channels_per_split(g.shape.in_channels, channel_groups * g.pooled_plane)),
        splits(ceil_div(g.shape.in_channels, split_channels)),
        by_channel_group(channel_groups) {}

  int channel_groups;  // groups of kTaskChannels output channels
  int split_channels;  // input channels that a split adds up
  int splits;
  Divisor by_channel_group;

  // Floats of the sums that splits leave to each other.
  int partial_floats(const Geometry& g) const {
    return splits > 1 ? splits * channel_groups * g.pooled_plane * kTaskChannels * kWindow : 0;
  }
};

// Where arrays start in shared memory, in floats.
struct Layout {
  int images[kMaxConvPools];   // [in_channels][padded height][padded width]
  int weights[kMaxConvPools];  // as in device memory
  int partials;                // [kTaskChannels][kWindow][splits][channel_groups][pooled positions]
  int floats;
};

inline Layout layout_of(const ConvPoolChain& chain) {
  Layout layout{};
  const auto reserve = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  int partials = 0;  // the convolutions use the same memory one after the other
  for (int l = 0; l < chain.count; ++l) {
    const Geometry g(chain.shapes[l]);
    layout.images[l] = reserve(g.image_floats);
    layout.weights[l] = reserve(chain.shapes[l].weights());
    const int floats = Tiling(g).partial_floats(g);
    partials = floats > partials ? floats : partials;
  }
  layout.partials = reserve(partials);
  return layout;
}

// Adds to sums[o][w] the products of window output w (upper left, upper right, lower left, lower right) of
// pooled position `position` and output channel first + o, over the input channels in `channels`. kWidth: the
// kernel's width, so that the loop is unrolled; 0: known only at run time. A row of the kernel needs kWidth +
// 1 columns of two input rows; each column is read once and moves from right to left.
template <int kWidth>
__device__ void add_products(const Geometry& g, const float* image, const float* weights, int first,
                             int position, SumRange channels, float (&sums)[kTaskChannels][kWindow]) {
  const ConvPoolShape& s = g.shape;
  const int kernel_width = kWidth > 0 ? kWidth : s.kernel_width;
  const int width = s.in_width + 2 * s.pad_x, plane = (s.in_height + 2 * s.pad_y) * width;
  const int taps = s.in_channels * s.kernel_height * kernel_width;
  const auto [pool_y, pool_x] = g.by_pool_width.divide(position);
  const float* rows[kTaskChannels];
  // In the last group of an odd number of channels, a channel that does not exist repeats the last one;
  // pool() drops its sums.
  for (int o = 0; o < kTaskChannels; ++o)
    rows[o] = weights + (first + o < s.out_channels ? first + o : s.out_channels - 1) * taps;
  for (int c = channels.begin; c < channels.end; ++c) {
    for (int ky = 0; ky < s.kernel_height; ++ky) {
      const float* upper = image + c * plane + (2 * pool_y + ky) * width + 2 * pool_x;
      const float* lower = upper + width;
      const int row = (c * s.kernel_height + ky) * kernel_width;
      float upper_left = upper[0], lower_left = lower[0];
      for (int kx = 0; kx < kernel_width; ++kx) {
        const float upper_right = upper[kx + 1], lower_right = lower[kx + 1];
        for (int o = 0; o < kTaskChannels; ++o) {
          const float w = rows[o][row + kx];
          sums[o][0] += upper_left * w;
          sums[o][1] += upper_right * w;
          sums[o][2] += lower_left * w;
          sums[o][3] += lower_right * w;
        }
        upper_left = upper_right;
        lower_left = lower_right;
      }
    }
  }
}

/// What a block does: the images blockIdx.x, blockIdx.x + gridDim.x, …
struct ForwardImages {
  int count = 0, images = 0;  // convolutions, samples of the batch
  Geometry geometry[kMaxConvPools] = {};
  Tiling tiling[kMaxConvPools] = {};
  ConvPoolArrays arrays[kMaxConvPools] = {};
  ConvPoolInput in;
  Layout layout;
  int outputs_at =
      -1;  // where the last convolution's outputs also go in shared memory, [outputs()]; −1: nowhere

  ForwardImages(const ConvPoolChain& chain, int images_, const ConvPoolInput& in_,
                const ConvPoolArrays* arrays_)
      : count(chain.count), images(images_), in(in_), layout(layout_of(chain)) {
    for (int l = 0; l < count; ++l) {
      geometry[l] = Geometry(chain.shapes[l]);
      tiling[l] = Tiling(geometry[l]);
      arrays[l] = arrays_[l];
    }
  }

  /// Starts to copy the weights, which run() needs: all threads wait for their copies before.
  __device__ void load_weights(float* shared) const {
    const int thread = static_cast<int>(threadIdx.x);
    for (int l = 0; l < count; ++l) {
      const ConvPoolShape& s = geometry[l].shape;
      const int weights = s.out_channels * s.in_channels * s.kernel_height * s.kernel_width;
      for (int i = thread; i < weights; i += kConvThreads)
        copy_async(shared + layout.weights[l] + i, arrays[l].weight + i);
      // The input of a later convolution: pool() fills it but for the padding, which stays zero for all
      // images.
      for (int i = thread; l > 0 && i < geometry[l].image_floats; i += kConvThreads)
        shared[layout.images[l] + i] = 0.0f;
    }
  }

  /// Loads the block's first image, if there is one, for run().
  __device__ void load_first_image(float* shared) const {
    const int image = static_cast<int>(blockIdx.x);
    if (image < images) load_image(geometry[0], in, image, shared + layout.images[0]);
  }

  /// The block's images. Ends with a barrier.
  __device__ void run(float* shared) const {
    const int first = static_cast<int>(blockIdx.x);
    for (int image = first; image < images; image += static_cast<int>(gridDim.x)) {
      if (image > first) load_image(geometry[0], in, image, shared + layout.images[0]);
      __syncthreads();
      for (int l = 0; l < count; ++l) {
        convolve(shared, l, image);
        __syncthreads();
      }
    }
  }

  // Convolution, relu and pooling number l. Ends without a barrier.
  __device__ void convolve(float* shared, int l, int image) const {
    const Geometry& g = geometry[l];
    const Tiling& tile = tiling[l];
    const int thread = static_cast<int>(threadIdx.x), outputs = tile.channel_groups * g.pooled_plane;
    const float *input = shared + layout.images[l], *weights = shared + layout.weights[l];
    float* partials = shared + layout.partials;
    for (int task = thread; task < tile.splits * outputs; task += kConvThreads) {
      const auto [split_and_group, position] = g.by_pooled_plane.divide(task);
      const auto [split, group] = tile.by_channel_group.divide(split_and_group);
      const int begin = split * tile.split_channels, end = begin + tile.split_channels;
      const SumRange channels{begin, end < g.shape.in_channels ? end : g.shape.in_channels};
      float sums[kTaskChannels][kWindow] = {};
      if (g.shape.kernel_width == 5) {
        add_products<5>(g, input, weights, group * kTaskChannels, position, channels, sums);
      } else if (g.shape.kernel_width == 3) {
        add_products<3>(g, input, weights, group * kTaskChannels, position, channels, sums);
      } else {
        add_products<0>(g, input, weights, group * kTaskChannels, position, channels, sums);
      }
      if (tile.splits == 1) {
        pool(shared, l, image, group, position, sums);
        continue;
      }
      for (int o = 0; o < kTaskChannels; ++o)
        for (int w = 0; w < kWindow; ++w)
          partials[(o * kWindow + w) * tile.splits * outputs + task] = sums[o][w];
    }
    if (tile.splits == 1) return;
    __syncthreads();
    for (int task = thread; task < outputs; task += kConvThreads) {
      const auto [group, position] = g.by_pooled_plane.divide(task);
      float sums[kTaskChannels][kWindow] = {};
      for (int split = 0; split < tile.splits; ++split) {
        for (int o = 0; o < kTaskChannels; ++o)
          for (int w = 0; w < kWindow; ++w)
            sums[o][w] += partials[((o * kWindow + w) * tile.splits + split) * outputs + task];
      }
      pool(shared, l, image, group, position, sums);
    }
  }

  // Pools the four sums of each channel, adds the bias, applies relu, and writes the output to device memory
  // and to the input of the next convolution. Bias and relu come after the maximum: they do not change which
  // is largest.
  __device__ void pool(float* shared, int l, int image, int group, int position,
                       const float (&sums)[kTaskChannels][kWindow]) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    for (int o = 0; o < kTaskChannels; ++o) {
      const int channel = group * kTaskChannels + o;
      if (channel >= s.out_channels) return;
      float largest = sums[o][0];
      int argmax = 0;
      // As PyTorch: the first of equals wins, and a NaN wins over every number.
      for (int w = 1; w < kWindow; ++w) {
        const float value = sums[o][w];
        if (value > largest || value != value) {
          largest = value;
          argmax = w;
        }
      }
      if (arrays[l].bias != nullptr) largest += arrays[l].bias[channel];
      const bool dead = largest <= 0.0f;
      const int index = (image * s.out_channels + channel) * g.pooled_plane + position;
      if (dead) largest = 0.0f;
      if (arrays[l].out != nullptr) arrays[l].out[index] = largest;
      if (arrays[l].argmax != nullptr)
        arrays[l].argmax[index] = dead ? kDeadRelu : static_cast<std::uint8_t>(argmax);
      if (l + 1 == count) {
        if (outputs_at >= 0) shared[outputs_at + channel * g.pooled_plane + position] = largest;
        continue;
      }
      const ConvPoolShape& next = geometry[l + 1].shape;
      const auto [y, x] = g.by_pool_width.divide(position);
      const int width = next.in_width + 2 * next.pad_x;
      shared[layout.images[l + 1] + (channel * (next.in_height + 2 * next.pad_y) + y + next.pad_y) * width +
             x + next.pad_x] = largest;
    }
  }
};

inline std::size_t forward_bytes(const ConvPoolChain& chain) {
  return static_cast<std::size_t>(layout_of(chain).floats) * sizeof(float);
}

}  // namespace sweep::cuda::conv_pool
