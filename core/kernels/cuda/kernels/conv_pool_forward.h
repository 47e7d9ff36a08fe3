// The forward kernel of conv_pool.h, and a part of others.
//
// Grid: blocks of 192 threads, as many as are resident. A block loads the weights of all convolutions to
// shared memory once, and then takes images in turns: image blockIdx.x, blockIdx.x + gridDim.x, … For each
// image it loads the padded input, and runs the convolutions one after the other; the pooled output of one is
// written straight into the padded input of the next. No block reads what another writes, so results do not
// depend on the number of blocks. Several small blocks on a multiprocessor, rather than one that takes
// several images: each waits at its barriers while the others compute, and a batch of 100 images is 100
// blocks.
//
// A task of one convolution is one pooled output position for 6 or 4 output channels: the thread computes the
// four convolution outputs of the 2×2 window for each of the channels in registers (24 or 16 sums). It reads
// each input once per kernel row, two columns at a time, and the weights of its channels at one tap, which
// are neighbours in shared memory, at once: 1.1 instructions per multiplication. If a layer has fewer tasks
// than the block has threads, the sum over the input channels is split among several threads, which leave
// their sums in shared memory; others add them up in order.
#pragma once

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/kernels/conv_pool_image.h"
#include "core/kernels/cuda/kernels/product.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda::conv_pool {

constexpr int kThreadCount = kConvForwardThreads;  // LeNet's convolutions have 144 and 192 tasks
constexpr int kWindow = 4;                         // convolution outputs that are pooled to one

// Output channels per task: those of the two numbers that leave fewer channels over.
constexpr int kManyChannels = 6, kFewChannels = 4;
inline int task_channels(int out_channels) {
  return round_up(out_channels, kManyChannels) <= round_up(out_channels, kFewChannels) ? kManyChannels
                                                                                       : kFewChannels;
}
// From the weights of a group of channels to those of the next: multiples of 16 bytes.
constexpr int group_floats(int channels) { return round_up(channels, 4); }

// Into how many splits a sum over channels is divided so that `outputs` sums occupy all threads of a block;
// returns the channels of a split. Depends on the shape alone, as the bits of the sums do.
inline int channels_per_split(int channels, int outputs) {
  const int splits = outputs < kThreadCount ? kThreadCount / outputs : 1;
  return ceil_div(channels, splits);
}

// Rows begin at even floats, so that two columns are read at once.
inline PaddedImage forward_image(const ConvPoolShape& s) {
  const int row_stride = round_up(s.padded_width(), 2);
  return {s, row_stride, s.padded_height() * row_stride};
}

// One convolution: its sizes, and how the threads divide it: [splits][groups][pooled positions] tasks.
struct Convolution {
  Convolution() = default;
  explicit Convolution(const ConvPoolShape& s)
      : shape(s),
        image(forward_image(s)),
        channels(task_channels(s.out_channels)),
        groups(ceil_div(s.out_channels, channels)),
        positions(s.pool_height * s.pool_width),
        split_channels(channels_per_split(s.in_channels, groups * positions)),
        splits(ceil_div(s.in_channels, split_channels)),
        // Odd multiples of 16 bytes: the weights arrive with four conflicts of banks instead of 16.
        tap_stride((groups * group_floats(channels) / 4 | 1) * 4),
        by_positions(positions),
        by_pool_width(s.pool_width),
        by_groups(groups),
        by_channels(channels),
        by_taps(s.taps()) {}

  ConvPoolShape shape;
  PaddedImage image;
  int channels, groups;  // output channels of a task, and tasks for all of them
  int positions;         // pooled
  int split_channels;    // input channels that a split adds up
  int splits;
  int tap_stride;  // weights: [taps][groups][group_floats()], and what tap_stride leaves between taps
  Divisor by_positions, by_pool_width, by_groups, by_channels, by_taps;

  constexpr int outputs() const { return groups * positions; }
  constexpr int weight_floats() const { return shape.taps() * tap_stride; }
  // Floats of the sums that splits leave to each other: float4 [channels of a task][splits][outputs()].
  int split_floats() const { return splits > 1 ? channels * splits * outputs() * kWindow : 0; }
};

// Where arrays start in shared memory, in floats.
struct Layout {
  int images[kMaxConvPools];   // PaddedImage
  int weights[kMaxConvPools];  // as Convolution says
  int split_sums;              // the convolutions use it one after the other
  int floats;
};

inline Layout layout_of(const ConvPoolChain& chain) {
  Layout layout{};
  const auto reserve = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  int split_floats = 0;
  for (int l = 0; l < chain.count; ++l) {
    const Convolution c(chain.shapes[l]);
    layout.images[l] = reserve(c.image.floats);
    layout.weights[l] = reserve(c.weight_floats());
    split_floats = c.split_floats() > split_floats ? c.split_floats() : split_floats;
  }
  layout.split_sums = reserve(split_floats);
  return layout;
}

// kColumns neighbours in a row; the first is at an even column.
template <int kColumns>
__device__ void read_columns(const float* from, float (&columns)[kColumns]) {
  static_assert(kColumns % 2 == 0);
  for (int pair = 0; pair < kColumns / 2; ++pair) {
    const FloatPair two = reinterpret_cast<const FloatPair*>(from)[pair];
    columns[2 * pair] = two.x;
    columns[2 * pair + 1] = two.y;
  }
}

// The weights of a task's channels at one tap.
template <int kChannels>
__device__ void read_weights(const float* from, float (&weights)[kChannels]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  weights[0] = four.x;
  weights[1] = four.y;
  weights[2] = four.z;
  weights[3] = four.w;
  if constexpr (kChannels == kManyChannels) {
    const FloatPair two = *reinterpret_cast<const FloatPair*>(from + 4);
    weights[4] = two.x;
    weights[5] = two.y;
  }
}

// The outputs of a task: those of the window (upper left, upper right, lower left, lower right), per channel.
template <int kChannels>
struct WindowSums {
  float4 sums[kChannels] = {};

  __device__ void add(const float (&weights)[kChannels], float upper_left, float upper_right,
                      float lower_left, float lower_right) {
    for (int o = 0; o < kChannels; ++o) {
      sums[o].x += upper_left * weights[o];
      sums[o].y += upper_right * weights[o];
      sums[o].z += lower_left * weights[o];
      sums[o].w += lower_right * weights[o];
    }
  }
};

// Adds one input channel. kKernel: width and height of the kernel. image: the window's first input; weights:
// those of the task's channels at the first tap. Rows are not unrolled: most of the time of a small batch
// goes by until instructions arrive that run only once.
template <int kKernel, int kChannels>
__device__ void add_channel(const Convolution& c, const float* image, const float* weights,
                            WindowSums<kChannels>& outputs) {
  static_assert(kKernel % 2 == 1);
  float w[kChannels];
  float upper[kKernel + 1], lower[kKernel + 1];
  read_columns(image, lower);
  SWEEP_ROLLED
  for (int ky = 0; ky < kKernel; ++ky) {
    for (int column = 0; column <= kKernel; ++column) upper[column] = lower[column];
    image += c.image.row_stride;
    read_columns(image, lower);
    for (int kx = 0; kx < kKernel; ++kx, weights += c.tap_stride) {
      read_weights(weights, w);
      outputs.add(w, upper[kx], upper[kx + 1], lower[kx], lower[kx + 1]);
    }
  }
}

/// What a block of kBlockThreads threads does: the images blockIdx.x, blockIdx.x + gridDim.x, … It needs
/// forward_bytes() of shared memory.
template <int kBlockThreads>
struct ForwardImages {
  int count, images;  // convolutions, samples of the batch
  Convolution convolutions[kMaxConvPools] = {};
  ConvPoolArrays arrays[kMaxConvPools] = {};
  ConvPoolInput in;
  Layout layout;
  int last_outputs = -1;  // where the last convolution's outputs also go in shared memory; −1: nowhere

  ForwardImages(const ConvPoolChain& chain, int images_, const ConvPoolInput& in_,
                const ConvPoolArrays* arrays_)
      : count(chain.count), images(images_), in(in_), layout(layout_of(chain)) {
    for (int l = 0; l < count; ++l) {
      convolutions[l] = Convolution(chain.shapes[l]);
      arrays[l] = arrays_[l];
    }
  }

  static __device__ int thread_index() { return static_cast<int>(threadIdx.x); }

  /// Comes first. Padding stays zero for all images, and channels that fill up a group have zeros for
  /// weights.
  __device__ void clear(float* shared) const {
    fill_with_zeros(shared, layout.split_sums, kBlockThreads);
    __syncthreads();
  }

  /// Starts to copy the weights. The threads wait for their copies before run().
  __device__ void load_weights(float* shared) const {
    SWEEP_ROLLED
    for (int l = 0; l < count; ++l) load_weights(shared, l);
  }

  /// Loads the block's first image, if there is one.
  __device__ void load_first_image(float* shared) const {
    if (static_cast<int>(blockIdx.x) < images) load_image(shared, static_cast<int>(blockIdx.x));
  }

  /// Computes the block's images; the first is already loaded. Ends with a barrier.
  __device__ void run(float* shared) const {
    const int first = static_cast<int>(blockIdx.x);
    for (int image = first; image < images; image += static_cast<int>(gridDim.x)) {
      if (image > first) load_image(shared, image);
      __syncthreads();
      SWEEP_ROLLED
      for (int l = 0; l < count; ++l) {
        convolve(shared, image, l);
        __syncthreads();
      }
    }
  }

 private:
  __device__ void load_image(float* shared, int image) const {
    ImageInFlight<(28 * 28 + kBlockThreads - 1) / kBlockThreads> pixels;  // all values of MNIST's
    pixels.load(convolutions[0].image, in, image, kBlockThreads);
    pixels.store(convolutions[0].image, in, image, kBlockThreads, shared + layout.images[0]);
  }

  // Asynchronous copies.
  __device__ void load_weights(float* shared, int l) const {
    const Convolution& c = convolutions[l];
    SWEEP_ROLLED
    for (int i = thread_index(); i < c.shape.weights(); i += kBlockThreads) {
      const auto [out_channel, tap] = c.by_taps.divide(i);
      const auto [group, channel] = c.by_channels.divide(out_channel);
      const int to = tap * c.tap_stride + group * group_floats(c.channels) + channel;
      copy_async(shared + layout.weights[l] + to, arrays[l].weight + i);
    }
  }

  // Convolution, relu and pooling number l. Ends without a barrier.
  __device__ void convolve(float* shared, int image, int l) const {
    const Convolution& c = convolutions[l];
    const bool many = c.channels == kManyChannels;
    if (c.shape.kernel_width == 5) {
      many ? add_windows<5, kManyChannels>(shared, image, l) : add_windows<5, kFewChannels>(shared, image, l);
    } else {
      many ? add_windows<3, kManyChannels>(shared, image, l) : add_windows<3, kFewChannels>(shared, image, l);
    }
    fill_up_argmax(c.shape, image, arrays[l].argmax);
    if (c.splits == 1) return;
    __syncthreads();
    const auto* sums = reinterpret_cast<const float4*>(shared + layout.split_sums);
    SWEEP_ROLLED
    for (int i = thread_index(); i < c.shape.outputs(); i += kBlockThreads) {
      const auto [out_channel, position] = c.by_positions.divide(i);
      const auto [group, channel] = c.by_channels.divide(out_channel);
      const float4* split = sums + channel * c.splits * c.outputs() + group * c.positions + position;
      float4 sum = *split;
      SWEEP_ROLLED
      for (int s = 1; s < c.splits; ++s) {
        split += c.outputs();
        sum.x += split->x;
        sum.y += split->y;
        sum.z += split->z;
        sum.w += split->w;
      }
      Places places = places_of(shared, image, l, position, out_channel);
      pool(places, sum);
    }
  }

  // The bytes after the last output of an image, which backward copies but does not use.
  __device__ void fill_up_argmax(const ConvPoolShape& s, int image, std::uint8_t* argmax) const {
    if (argmax == nullptr || thread_index() >= s.argmax_bytes() - s.outputs()) return;
    argmax[static_cast<std::ptrdiff_t>(image) * s.argmax_bytes() + s.outputs() + thread_index()] = kDeadRelu;
  }

  // The tasks of convolution l: pools their outputs, or leaves the sums of splits.
  template <int kKernel, int kChannels>
  __device__ void add_windows(float* shared, int image, int l) const {
    const Convolution& c = convolutions[l];
    SWEEP_ROLLED
    for (int task = thread_index(); task < c.splits * c.outputs(); task += kBlockThreads) {
      const auto [split_and_group, position] = c.by_positions.divide(task);
      const auto [split, group] = c.by_groups.divide(split_and_group);
      const auto [y, x] = c.by_pool_width.divide(position);
      const int first = split * c.split_channels, left = c.shape.in_channels - first;
      const float* input =
          shared + layout.images[l] + first * c.image.plane_stride + 2 * y * c.image.row_stride + 2 * x;
      const int kernel_taps = c.shape.kernel_height * c.shape.kernel_width * c.tap_stride;
      const float* weights =
          shared + layout.weights[l] + first * kernel_taps + group * group_floats(kChannels);
      WindowSums<kChannels> outputs;
      SWEEP_ROLLED
      for (int n = 0; n < (left < c.split_channels ? left : c.split_channels); ++n) {
        add_channel<kKernel>(c, input, weights, outputs);
        input += c.image.plane_stride;
        weights += kernel_taps;
      }
      if (c.splits > 1) {
        auto* sums = reinterpret_cast<float4*>(shared + layout.split_sums) + task;
        for (int o = 0; o < kChannels; ++o) sums[o * c.splits * c.outputs()] = outputs.sums[o];
      } else {
        Places places = places_of(shared, image, l, position, group * kChannels);
        const int channels = c.shape.out_channels - group * kChannels;
        for (int o = 0; o < kChannels && o < channels; ++o) pool(places, outputs.sums[o]);
      }
    }
  }

  // Where the output of a channel goes at one position of a convolution; nullptr: nowhere.
  struct Places {
    const float* bias;
    float *out, *shared;  // of the image; shared: the input of the next convolution, or of a stack
    std::uint8_t* argmax;
    int channel, at, stride;  // of `bias`; of `out` and `argmax`, and from a channel to the next
    int shared_at = at, shared_stride = stride;
  };
  __device__ Places places_of(float* shared, int image, int l, int position, int channel) const {
    const Convolution& c = convolutions[l];
    const ConvPoolArrays& to = arrays[l];
    const std::ptrdiff_t before = image;
    Places places{to.bias,
                  to.out == nullptr ? nullptr : to.out + before * c.shape.outputs(),
                  last_outputs < 0 ? nullptr : shared + last_outputs,
                  to.argmax == nullptr ? nullptr : to.argmax + before * c.shape.argmax_bytes(),
                  channel,
                  channel * c.positions + position,
                  c.positions};
    if (l + 1 == count) return places;
    const PaddedImage& next = convolutions[l + 1].image;
    const auto [y, x] = c.by_pool_width.divide(position);
    places.shared = shared + layout.images[l + 1];
    places.shared_at = next.first + channel * next.plane_stride + y * next.row_stride + x;
    places.shared_stride = next.plane_stride;
    return places;
  }

  // Pools a window, adds the bias, applies relu, and writes the output to device memory and to the input of
  // the next convolution. Bias and relu come after the maximum: they do not change which is largest. Then
  // `places` are those of the next channel: an addition each costs less than a product per channel.
  static __device__ void pool(Places& places, const float4& window) {
    float largest = window.x;
    int argmax = 0;
    // As PyTorch: the first of equals wins, and a NaN wins over every number.
    const auto compare = [&](float value, int index) {
      if (value > largest || value != value) {
        largest = value;
        argmax = index;
      }
    };
    compare(window.y, 1);
    compare(window.z, 2);
    compare(window.w, 3);
    if (places.bias != nullptr) largest += places.bias[places.channel];
    const bool dead = largest <= 0.0f;
    if (dead) largest = 0.0f;
    if (places.out != nullptr) places.out[places.at] = largest;
    if (places.argmax != nullptr)
      places.argmax[places.at] = dead ? kDeadRelu : static_cast<std::uint8_t>(argmax);
    if (places.shared != nullptr) places.shared[places.shared_at] = largest;
    ++places.channel;
    places.at += places.stride;
    places.shared_at += places.shared_stride;
  }
};

inline std::size_t forward_bytes(const ConvPoolChain& chain) {
  return static_cast<std::size_t>(layout_of(chain).floats) * sizeof(float);
}

}  // namespace sweep::cuda::conv_pool
