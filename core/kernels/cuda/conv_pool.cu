#include "core/kernels/cuda/conv_pool.h"

#include "core/kernels/cuda/divisor.h"
#include "core/kernels/cuda/pixel_value.h"
#include "core/kernels/cuda/product.h"

namespace sweep::cuda {
namespace {

constexpr int kBlock = static_cast<int>(kThreads);
constexpr int kWidest = 7;       // kernel columns that a thread adds up in registers
constexpr int kMostRounds = 2;   // kernel rows per thread
constexpr int kOwnChannels = 2;  // output channels per thread, forward

// The shape with divisors.
struct Geometry {
  explicit Geometry(const ConvPoolShape& s)
      : shape(s),
        places(s.pool_height * s.pool_width),
        image_floats(s.in_channels * s.padded_height() * s.padded_width()),
        items(s.out_channels * s.in_channels * s.kernel_height),
        groups(items < kBlock ? kBlock / items : 1),
        padded_plane(s.padded_height() * s.padded_width()),
        padded_width(s.padded_width()),
        by_place(places),
        by_pool_width(s.pool_width),
        by_kernel_height(s.kernel_height),
        by_in_channels(s.in_channels),
        by_in_plane(s.in_height * s.in_width),
        by_in_width(s.in_width) {}

  ConvPoolShape shape;
  int places, image_floats;
  int items;   // rows of kernels: output channel, input channel, kernel y
  int groups;  // of threads that share out the places, backward
  Divisor padded_plane, padded_width, by_place, by_pool_width, by_kernel_height, by_in_channels, by_in_plane,
      by_in_width;
};

__device__ int thread_index() { return static_cast<int>(threadIdx.x); }

// Brings image `image` of the batch to shared memory, with its padding.
__device__ void load_image(const Geometry& g, const ConvPoolInput& in, int image, float* shared) {
  const ConvPoolShape& s = g.shape;
  const int plane = s.in_height * s.in_width, sample = s.in_channels * plane;
  const std::uint8_t* bytes =
      in.floats != nullptr
          ? nullptr
          : in.input->pixels + static_cast<std::size_t>(in.rows[image]) * static_cast<std::size_t>(sample);
  const float* floats =
      in.floats == nullptr ? nullptr : in.floats + static_cast<std::ptrdiff_t>(image) * sample;
  for (int i = thread_index(); i < g.image_floats; i += kBlock) {
    const auto [channel, place] = g.padded_plane.divide(i);
    const auto [padded_y, padded_x] = g.padded_width.divide(place);
    const int y = padded_y - s.pad_y, x = padded_x - s.pad_x;
    float value = 0.0f;
    if (y >= 0 && y < s.in_height && x >= 0 && x < s.in_width) {
      const int element = channel * plane + y * s.in_width + x;
      value = bytes != nullptr ? pixel_value(bytes, element, plane, in.normalisation) : floats[element];
    }
    shared[i] = value;
  }
}

__device__ void copy_to_shared(const float* from, int count, float* shared) {
  for (int i = thread_index(); i < count; i += kBlock) shared[i] = from[i];
}

// A block per image; a thread computes some channels of one output of the pooling.
__global__ void __launch_bounds__(kThreads)
    forward_kernel(Geometry g, ConvPoolInput in, const float* weight, const float* bias, float* out,
                   std::uint8_t* winner) {
  const ConvPoolShape& s = g.shape;
  float* image = launched_shared<float>();
  float* weights = image + g.image_floats;
  const int number = static_cast<int>(blockIdx.x), taps = s.in_channels * s.kernel_height * s.kernel_width;
  const int plane = (s.in_height + 2 * s.pad_y) * (s.in_width + 2 * s.pad_x),
            width = s.in_width + 2 * s.pad_x;
  load_image(g, in, number, image);
  copy_to_shared(weight, s.out_channels * taps, weights);
  __syncthreads();
  const int items = ceil_div(s.out_channels, kOwnChannels) * g.places;
  for (int item = thread_index(); item < items; item += kBlock) {
    const auto [chunk, place] = g.by_place.divide(item);
    const auto [pool_y, pool_x] = g.by_pool_width.divide(place);
    const int first = chunk * kOwnChannels;
    float sums[kOwnChannels][4] = {};  // of the four places that are pooled
    for (int c = 0; c < s.in_channels; ++c) {
      for (int ky = 0; ky < s.kernel_height; ++ky) {
        const float* upper = image + c * plane + (2 * pool_y + ky) * width + 2 * pool_x;
        const float* lower = upper + width;
        const float* row = weights + first * taps + (c * s.kernel_height + ky) * s.kernel_width;
        float upper_left = upper[0], lower_left = lower[0];
        for (int kx = 0; kx < s.kernel_width; ++kx) {
          const float upper_right = upper[kx + 1], lower_right = lower[kx + 1];
          for (int o = 0; o < kOwnChannels; ++o) {
            const float w = first + o < s.out_channels ? row[o * taps + kx] : 0.0f;
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
    for (int o = 0; o < kOwnChannels && first + o < s.out_channels; ++o) {
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
      if (bias != nullptr) largest += bias[first + o];
      const bool dead = largest <= 0.0f;
      const int at = (number * s.out_channels + first + o) * g.places + place;
      out[at] = dead ? 0.0f : largest;
      winner[at] = dead ? kNobody : static_cast<std::uint8_t>(best);
    }
  }
}

// What the backward kernel keeps in shared memory of an image's gradient: of each output, its value and the
// corner of the window that it comes from.
struct SharedGradient {
  float* values;
  int* corners;  // offsets in a padded plane
};

__device__ void load_gradient(const Geometry& g, int image, const float* grad_out, const std::uint8_t* winner,
                              const SharedGradient& shared) {
  const int outputs = g.shape.out_channels * g.places, width = g.shape.in_width + 2 * g.shape.pad_x;
  for (int i = thread_index(); i < outputs; i += kBlock) {
    const auto [y, x] = g.by_pool_width.divide(g.by_place.divide(i).remainder);
    const int best = winner[image * outputs + i];
    shared.values[i] = best == kNobody ? 0.0f : grad_out[image * outputs + i];
    shared.corners[i] = best == kNobody ? 0 : (2 * y + best / 2) * width + 2 * x + best % 2;
  }
}

// One row of a kernel: the sums of its weights' gradients.
struct RowSums {
  float weights[kWidest] = {};
  float bias = 0.0f;
};

// Adds what places group, group + groups … give to row `item`.
__device__ void add_row(const Geometry& g, const float* image, const SharedGradient& gradient, int item,
                        int group, RowSums& sums) {
  const ConvPoolShape& s = g.shape;
  const auto [channels, ky] = g.by_kernel_height.divide(item);
  const auto [out_channel, in_channel] = g.by_in_channels.divide(channels);
  const int width = s.in_width + 2 * s.pad_x;
  const float* from = image + in_channel * (s.in_height + 2 * s.pad_y) * width + ky * width;
  for (int place = group; place < g.places; place += g.groups) {
    const float value = gradient.values[out_channel * g.places + place];
    if (value == 0.0f) continue;
    const float* pixels = from + gradient.corners[out_channel * g.places + place];
    for (int kx = 0; kx < kWidest; ++kx) {
      if (kx < s.kernel_width) sums.weights[kx] += value * pixels[kx];
    }
    sums.bias += value;
  }
}

// The gradient of the input, gathered: each input looks at the outputs whose windows may have it in them.
__device__ void write_input_gradient(const Geometry& g, int image, const SharedGradient& gradient,
                                     const float* weights, bool add, float* grad_in) {
  const ConvPoolShape& s = g.shape;
  const int sample = s.in_channels * s.in_height * s.in_width, width = s.in_width + 2 * s.pad_x;
  const int kernel = s.kernel_height * s.kernel_width;
  for (int i = thread_index(); i < sample; i += kBlock) {
    const auto [channel, place] = g.by_in_plane.divide(i);
    const auto [unpadded_y, unpadded_x] = g.by_in_width.divide(place);
    const int y = unpadded_y + s.pad_y, x = unpadded_x + s.pad_x;
    // Output places y − kernel + 1 … y, two to a place of the pooling.
    const int first_y = y < s.kernel_height ? 0 : (y - s.kernel_height + 1) / 2,
              first_x = x < s.kernel_width ? 0 : (x - s.kernel_width + 1) / 2;
    const int last_y = y / 2 < s.pool_height ? y / 2 : s.pool_height - 1,
              last_x = x / 2 < s.pool_width ? x / 2 : s.pool_width - 1;
    float sum = 0.0f;
    for (int o = 0; o < s.out_channels; ++o) {
      const float* own = weights + (o * s.in_channels + channel) * kernel;
      for (int py = first_y; py <= last_y; ++py) {
        for (int px = first_x; px <= last_x; ++px) {
          const int at = o * g.places + py * s.pool_width + px;
          const float value = gradient.values[at];
          // The corner is in row 2 · py or the one below it, in column 2 · px or the next.
          const int beyond = gradient.corners[at] - 2 * py * width - 2 * px;
          const int down = beyond >= width ? 1 : 0;
          const int ky = y - 2 * py - down, kx = x - 2 * px - (beyond - down * width);
          if (value != 0.0f && ky >= 0 && ky < s.kernel_height && kx >= 0 && kx < s.kernel_width)
            sum += value * own[ky * s.kernel_width + kx];
        }
      }
    }
    float& at = grad_in[static_cast<std::ptrdiff_t>(image) * sample + i];
    at = add ? at + sum : sum;
  }
}

// A block per part: some images, one after the other.
__global__ void __launch_bounds__(kThreads)
    backward_kernel(Geometry g, int images, ConvPoolInput in, const float* weight, const float* grad_out,
                    const std::uint8_t* winner, float* gradient, bool add, float* grad_in) {
  const ConvPoolShape& s = g.shape;
  const int outputs = s.out_channels * g.places,
            kernel_weights = s.in_channels * s.kernel_height * s.kernel_width;
  const int weight_count = s.out_channels * kernel_weights;
  const int floats = weight_count + (s.bias ? s.out_channels : 0);
  float* image = launched_shared<float>();
  const SharedGradient shared{image + g.image_floats,
                              reinterpret_cast<int*>(image + g.image_floats + outputs)};
  float* weights = image + g.image_floats + 2 * outputs;  // only for the input's gradient
  float* group_sums =
      weights + (grad_in != nullptr ? weight_count : 0);  // [groups][floats], if there are several
  if (grad_in != nullptr) copy_to_shared(weight, weight_count, weights);
  const int group = thread_index() / g.items;  // of several; with one, threads take rows in turns
  RowSums sums[kMostRounds];
  const SumRange own = part_of(images, static_cast<int>(gridDim.x), static_cast<int>(blockIdx.x));
  for (int number = own.begin; number < own.end; ++number) {
    __syncthreads();  // The last image may still be read.
    load_image(g, in, number, image);
    load_gradient(g, number, grad_out, winner, shared);
    __syncthreads();
    for (int round = 0; round < kMostRounds; ++round) {
      const int item = g.groups > 1 ? thread_index() - group * g.items : thread_index() + round * kBlock;
      if (item < g.items && group < g.groups && (g.groups == 1 || round == 0))
        add_row(g, image, shared, item, g.groups > 1 ? group : 0, sums[round]);
    }
    if (grad_in != nullptr) write_input_gradient(g, number, shared, weights, add, grad_in);
  }
  float* part = gradient + static_cast<std::ptrdiff_t>(blockIdx.x) * floats;
  for (int round = 0; round < kMostRounds; ++round) {
    const int item = g.groups > 1 ? thread_index() - group * g.items : thread_index() + round * kBlock;
    if (item >= g.items || (g.groups > 1 && (group >= g.groups || round > 0))) continue;
    float* to = g.groups > 1 ? group_sums + group * floats : part;
    for (int kx = 0; kx < kWidest; ++kx) {
      if (kx < s.kernel_width) to[item * s.kernel_width + kx] = sums[round].weights[kx];
    }
    // Rows of output channel o start at o · in_channels · kernel_height; the first of them has the channel's
    // bias.
    const auto [channel, row] =
        Divisor::Result{item / (s.in_channels * s.kernel_height), item % (s.in_channels * s.kernel_height)};
    if (s.bias && row == 0) to[weight_count + channel] = sums[round].bias;
  }
  if (g.groups == 1) return;
  __syncthreads();
  for (int i = thread_index(); i < floats; i += kBlock) {
    float sum = group_sums[i];
    for (int other = 1; other < g.groups; ++other) sum += group_sums[other * floats + i];
    part[i] = sum;
  }
}

std::size_t forward_bytes(const ConvPoolShape& s) {
  return static_cast<std::size_t>(Geometry(s).image_floats + s.weights()) * sizeof(float);
}

std::size_t backward_bytes(const ConvPoolShape& s, bool input_gradient) {
  const Geometry g(s);
  const int sums = g.groups > 1 ? g.groups * s.gradient_floats() : 0;
  return static_cast<std::size_t>(g.image_floats + 2 * s.outputs() + (input_gradient ? s.weights() : 0) +
                                  sums) *
         sizeof(float);
}

}  // namespace

bool conv_pool_fits(const ConvPoolShape& s) {
  return s.pool_height > 0 && s.pool_width > 0 && s.kernel_width <= kWidest &&
         Geometry(s).items <= kMostRounds * kBlock && forward_bytes(s) <= kSharedBytes &&
         backward_bytes(s, true) <= kSharedBytes;
}

void conv_pool_forward(Stream& stream, const ConvPoolShape& s, int images, const ConvPoolInput& in,
                       const float* weight, const float* bias, float* out, std::uint8_t* winner) {
  launch(stream, forward_kernel, {static_cast<unsigned>(images)}, {{kThreads}, forward_bytes(s)}, Geometry(s),
         in, weight, bias, out, winner);
}

int conv_pool_gradient_parts(int images) {
  constexpr int kMost = 264;  // two blocks for each multiprocessor of a large GPU
  return images < kMost ? images : kMost;
}

void conv_pool_backward(Stream& stream, const ConvPoolShape& s, int images, int parts,
                        const ConvPoolInput& in, const float* weight, const float* grad_out,
                        const std::uint8_t* winner, float* gradient, bool add, float* grad_in) {
  launch(stream, backward_kernel, {static_cast<unsigned>(parts)},
         {{kThreads}, backward_bytes(s, grad_in != nullptr)}, Geometry(s), images, in, weight, grad_out,
         winner, gradient, add, grad_in);
}

}  // namespace sweep::cuda
