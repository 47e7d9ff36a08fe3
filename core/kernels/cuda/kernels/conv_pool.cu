#include "core/kernels/cuda/kernels/conv_pool.h"

#include "core/kernels/cuda/kernels/conv_pool_geometry.h"

namespace sweep::cuda {
namespace {

using Geometry = ConvPoolGeometry;

// Most blocks, four for each multiprocessor of a large GPU. Each has the weights in its shared memory, and
// takes images in turns.
constexpr int kForwardBlocks = 528;

// Where arrays lie in shared memory, in floats.
struct Layout {
  int images[kMaxConvPools];   // the convolution's input, with its padding
  int weights[kMaxConvPools];  // as in memory
  int parts;                   // [splits][chunks][places][kOwnChannels][4] sums
  int floats;
};

Layout layout_of(const ConvPoolChain& chain) {
  Layout layout{};
  const auto take = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  int parts = 0;
  for (int l = 0; l < chain.count; ++l) {
    const Geometry g(chain.shapes[l]);
    layout.images[l] = take(g.image_floats);
    layout.weights[l] = take(chain.shapes[l].weights());
    parts = g.forward_parts() > parts ? g.forward_parts() : parts;
  }
  layout.parts = take(parts);
  return layout;
}

// Of one output of the pooling, and kOwnChannels channels from `first` on: the sums of the four places that
// are pooled, over some input channels. kWidth: the kernel's, or 0 for one that is not known beforehand.
template <int kWidth>
__device__ void add_products(const Geometry& g, const float* image, const float* weights, int first,
                             int place, SumRange channels, float (&sums)[kOwnChannels][4]) {
  const ConvPoolShape& s = g.shape;
  const int kernel_width = kWidth > 0 ? kWidth : s.kernel_width;
  const int width = s.in_width + 2 * s.pad_x, plane = (s.in_height + 2 * s.pad_y) * width;
  const int taps = s.in_channels * s.kernel_height * kernel_width;
  const auto [pool_y, pool_x] = g.by_pool_width.divide(place);
  const float* rows[kOwnChannels];
  // A thread without a last channel computes the one before it once more.
  for (int o = 0; o < kOwnChannels; ++o)
    rows[o] = weights + (first + o < s.out_channels ? first + o : s.out_channels - 1) * taps;
  for (int c = channels.begin; c < channels.end; ++c) {
    for (int ky = 0; ky < s.kernel_height; ++ky) {
      const float* upper = image + c * plane + (2 * pool_y + ky) * width + 2 * pool_x;
      const float* lower = upper + width;
      const int row = (c * s.kernel_height + ky) * kernel_width;
      float upper_left = upper[0], lower_left = lower[0];
      for (int kx = 0; kx < kernel_width; ++kx) {
        const float upper_right = upper[kx + 1], lower_right = lower[kx + 1];
        for (int o = 0; o < kOwnChannels; ++o) {
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

struct ForwardKernel {
  static constexpr unsigned kMaxThreads = kConvThreads;

  int count, images;
  Geometry geometry[kMaxConvPools] = {};
  ConvPoolArrays arrays[kMaxConvPools] = {};
  ConvPoolInput in;
  Layout layout;

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    const int thread = static_cast<int>(threadIdx.x);
    for (int l = 0; l < count; ++l) {
      const ConvPoolShape& s = geometry[l].shape;
      const int weights = s.out_channels * s.in_channels * s.kernel_height * s.kernel_width;
      for (int i = thread; i < weights; i += kConvThreads)
        copy_async(shared + layout.weights[l] + i, arrays[l].weight + i);
      // The padding between the convolutions stays zero.
      for (int i = thread; l > 0 && i < geometry[l].image_floats; i += kConvThreads)
        shared[layout.images[l] + i] = 0.0f;
    }
    wait_for_copies();
    for (int image = static_cast<int>(blockIdx.x); image < images; image += static_cast<int>(gridDim.x)) {
      load_image(geometry[0], in, image, shared + layout.images[0]);
      __syncthreads();
      for (int l = 0; l < count; ++l) {
        convolve(shared, l, image);
        __syncthreads();
      }
    }
  }

  __device__ void convolve(float* shared, int l, int image) const {
    const Geometry& g = geometry[l];
    const int thread = static_cast<int>(threadIdx.x), outputs = g.chunks * g.places;
    float* parts = shared + layout.parts;
    for (int item = thread; item < g.splits * outputs; item += kConvThreads) {
      const auto [line, place] = g.by_place.divide(item);
      const auto [split, chunk] = g.by_chunk.divide(line);
      const int begin = split * g.channel_share, end = begin + g.channel_share;
      const SumRange channels{begin, end < g.shape.in_channels ? end : g.shape.in_channels};
      float sums[kOwnChannels][4] = {};
      const float *from = shared + layout.images[l], *weights = shared + layout.weights[l];
      if (g.shape.kernel_width == 5) {
        add_products<5>(g, from, weights, chunk * kOwnChannels, place, channels, sums);
      } else if (g.shape.kernel_width == 3) {
        add_products<3>(g, from, weights, chunk * kOwnChannels, place, channels, sums);
      } else {
        add_products<0>(g, from, weights, chunk * kOwnChannels, place, channels, sums);
      }
      if (g.splits == 1) {
        pool(shared, l, image, chunk, place, sums);
        continue;
      }
      for (int o = 0; o < kOwnChannels; ++o)
        for (int i = 0; i < 4; ++i) parts[(o * 4 + i) * g.splits * outputs + item] = sums[o][i];
    }
    if (g.splits == 1) return;
    __syncthreads();
    for (int item = thread; item < outputs; item += kConvThreads) {
      const auto [chunk, place] = g.by_place.divide(item);
      float sums[kOwnChannels][4] = {};
      for (int split = 0; split < g.splits; ++split) {
        for (int o = 0; o < kOwnChannels; ++o)
          for (int i = 0; i < 4; ++i) sums[o][i] += parts[((o * 4 + i) * g.splits + split) * outputs + item];
      }
      pool(shared, l, image, chunk, place, sums);
    }
  }

  __device__ void pool(float* shared, int l, int image, int chunk, int place,
                       const float (&sums)[kOwnChannels][4]) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    for (int o = 0; o < kOwnChannels; ++o) {
      const int channel = chunk * kOwnChannels + o;
      if (channel >= s.out_channels) return;
      float largest = sums[o][0];
      int best = 0;
      for (int i = 1; i < 4;
           ++i) {  // As PyTorch: the first of equals wins, and a NaN wins over every number.
        const float value = sums[o][i];
        if (value > largest || value != value) {
          largest = value;
          best = i;
        }
      }
      if (arrays[l].bias != nullptr) largest += arrays[l].bias[channel];
      const bool dead = largest <= 0.0f;
      const int at = (image * s.out_channels + channel) * g.places + place;
      if (dead) largest = 0.0f;
      if (arrays[l].out != nullptr) arrays[l].out[at] = largest;
      if (arrays[l].argmax != nullptr)
        arrays[l].argmax[at] = dead ? kDeadRelu : static_cast<std::uint8_t>(best);
      if (l + 1 == count) continue;
      const ConvPoolShape& next = geometry[l + 1].shape;
      const auto [y, x] = g.by_pool_width.divide(place);
      const int width = next.in_width + 2 * next.pad_x;
      shared[layout.images[l + 1] + (channel * (next.in_height + 2 * next.pad_y) + y + next.pad_y) * width +
             x + next.pad_x] = largest;
    }
  }
};

std::size_t forward_bytes(const ConvPoolChain& chain) {
  return static_cast<std::size_t>(layout_of(chain).floats) * sizeof(float);
}

}  // namespace

bool conv_pool_fits(const ConvPoolChain& chain) {
  for (int l = 0; l < chain.count; ++l) {
    const ConvPoolShape& s = chain.shapes[l];
    if (s.pool_height <= 0 || s.pool_width <= 0 || s.kernel_width > kMaxKernelWidth ||
        Geometry(s).items > kConvThreads)
      return false;
  }
  return forward_bytes(chain) <= kSharedBytes && conv_pool_backward_bytes(chain, true) <= kSharedBytes;
}

void conv_pool_forward(Stream& stream, const ConvPoolChain& chain, int images, const ConvPoolInput& in,
                       const ConvPoolArrays* arrays) {
  ForwardKernel kernel{.count = chain.count, .images = images, .in = in, .layout = layout_of(chain)};
  for (int l = 0; l < chain.count; ++l) {
    kernel.geometry[l] = Geometry(chain.shapes[l]);
    kernel.arrays[l] = arrays[l];
  }
  launch_functor(stream, kernel, {static_cast<unsigned>(images < kForwardBlocks ? images : kForwardBlocks)},
                 {{kConvThreads}, forward_bytes(chain)});
}

}  // namespace sweep::cuda
