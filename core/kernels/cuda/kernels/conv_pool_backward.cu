#include "core/kernels/cuda/kernels/conv_pool_geometry.h"

namespace sweep::cuda {
namespace {

using Geometry = ConvPoolGeometry;

// The gradient of an output of the pooling, and the corner of the window that it comes from, in the input
// with its padding. Where the relu let nothing through, the corner is so far away that no window has
// anything.
struct alignas(8) Winner {
  float value;
  std::int16_t y, x;
};
constexpr std::int16_t kNowhere = -(1 << 14);

// Where arrays lie in shared memory, in floats.
struct Layout {
  int images[kMaxConvPools];   // the convolution's input, with its padding
  int winners[kMaxConvPools];  // [outputs]
  int weights[kMaxConvPools];  // [out][ky][kx][in_chunks · kOwnInputs], where the input's gradient is needed
  int parts;                   // [out_splits][in_chunks][plane][kOwnInputs] sums; at the end, groups' sums
  int floats;
};

Layout layout_of(const ConvPoolChain& chain, bool input_gradient) {
  Layout layout{};
  const auto take = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  int parts = 0;
  const auto need = [&](int floats) { parts = floats > parts ? floats : parts; };
  for (int l = 0; l < chain.count; ++l) {
    const Geometry g(chain.shapes[l]);
    layout.images[l] = take(g.image_floats);
    layout.winners[l] = take(2 * chain.shapes[l].outputs());
    need(g.group_sums());
    if (l == 0 && !input_gradient) continue;
    layout.weights[l] = take(g.turned_weights());
    need(g.input_parts());
  }
  layout.parts = take(parts);
  return layout;
}

// One row of a kernel: the sums of its weights' gradients.
struct RowSums {
  float weights[kMaxKernelWidth] = {};
  float bias = 0.0f;
};

// A block per part: some images, one after the other.
template <int kCount>
struct BackwardKernel {
  static constexpr unsigned kMaxThreads = kConvThreads;

  int images;
  Geometry geometry[kCount] = {};
  ConvPoolArrays arrays[kCount] = {};
  ConvPoolInput in;
  Layout layout;
  const float* grad_out;
  bool add;
  float* grad_in;

  static __device__ int thread_index() { return static_cast<int>(threadIdx.x); }

  __device__ Winner* winners(float* shared, int l) const {
    return reinterpret_cast<Winner*>(shared + layout.winners[l]);
  }

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    for (int l = grad_in != nullptr ? 0 : 1; l < kCount; ++l)
      turn_weights(geometry[l], arrays[l].weight, shared + layout.weights[l]);
    RowSums sums[kCount];
    const SumRange own = part_of(images, static_cast<int>(gridDim.x), static_cast<int>(blockIdx.x));
    for (int image = own.begin; image < own.end; ++image) {
      __syncthreads();  // The last image may still be read.
      load(shared, image);
      __syncthreads();
      backward_from<kCount - 1>(shared, image, sums);
    }
    write_sums(shared, 0, sums[0]);
    if constexpr (kCount > 1) write_sums(shared, 1, sums[1]);
  }

  // Convolution l and those before it.
  template <int l>
  __device__ void backward_from(float* shared, int image, RowSums (&sums)[kCount]) const {
    add_row(shared, l, sums[l]);
    if (l == 0 && grad_in == nullptr) return;
    write_input_gradient(shared, l, image);
    if constexpr (l > 0) {
      __syncthreads();
      backward_from<l - 1>(shared, image, sums);
    }
  }

  // [out][in][ky][kx] → [out][ky][kx][in], so that a thread reads its channels at once.
  static __device__ void turn_weights(const Geometry& g, const float* from, float* to) {
    const ConvPoolShape& s = g.shape;
    const int kernel = s.kernel_height * s.kernel_width, depth = g.in_chunks * kOwnInputs;
    for (int i = thread_index(); i < s.out_channels * kernel * depth; i += kConvThreads) {
      const int line = i / depth, c = i - line * depth, o = line / kernel, k = line - o * kernel;
      to[i] = c < s.in_channels ? from[(o * s.in_channels + c) * kernel + k] : 0.0f;
    }
  }

  __device__ void load(float* shared, int image) const {
    for (int l = 0; l < kCount; ++l) {
      ConvPoolInput from = in;
      if (l > 0) from = {.floats = arrays[l - 1].out};
      load_image(geometry[l], from, image, shared + layout.images[l]);
    }
    const int outputs = geometry[kCount - 1].shape.out_channels * geometry[kCount - 1].places;
    for (int i = thread_index(); i < outputs; i += kConvThreads)
      set_winner(shared, kCount - 1, image, i, grad_out[image * outputs + i]);
  }

  // Takes in the gradient of output `i` of the pooling.
  __device__ void set_winner(float* shared, int l, int image, int i, float gradient) const {
    const Geometry& g = geometry[l];
    const auto [y, x] = g.by_pool_width.divide(g.by_place.divide(i).remainder);
    const int best = arrays[l].argmax[image * g.shape.out_channels * g.places + i];
    winners(shared, l)[i] = best == kDeadRelu ? Winner{0.0f, kNowhere, kNowhere}
                                              : Winner{gradient, static_cast<std::int16_t>(2 * y + best / 2),
                                                       static_cast<std::int16_t>(2 * x + best % 2)};
  }

  // Adds what the thread's places give to its row of a kernel.
  __device__ void add_row(float* shared, int l, RowSums& sums) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    const int group = thread_index() / g.items, item = thread_index() - group * g.items;
    if (group >= g.groups) return;
    const auto [channels, ky] = g.by_kernel_height.divide(item);
    const auto [out_channel, in_channel] = g.by_in_channels.divide(channels);
    const int width = s.in_width + 2 * s.pad_x;
    const float* from =
        shared + layout.images[l] + in_channel * (s.in_height + 2 * s.pad_y) * width + ky * width;
    const Winner* own = winners(shared, l) + out_channel * g.places;
    for (int place = group; place < g.places; place += g.groups) {
      const Winner argmax = own[place];
      if (argmax.y == kNowhere) continue;
      const float* pixels = from + argmax.y * width + argmax.x;
      for (int kx = 0; kx < kMaxKernelWidth; ++kx) {
        if (kx < s.kernel_width) sums.weights[kx] += argmax.value * pixels[kx];
      }
      sums.bias += argmax.value;
    }
  }

  // The gradient of the input, gathered: each place of it, kOwnInputs channels in a thread, looks at the
  // outputs whose windows may have it in them.
  __device__ void write_input_gradient(float* shared, int l, int image) const {
    const Geometry& g = geometry[l];
    float* parts = shared + layout.parts;
    const int lines = g.in_chunks * g.plane;
    for (int item = thread_index(); item < g.out_splits * lines; item += kConvThreads) {
      const auto [line, place] = g.by_plane.divide(item);
      const auto [split, chunk] = g.by_in_chunk.divide(line);
      float sums[kOwnInputs] = {};
      add_windows(shared, l, split, chunk, place, sums);
      for (int c = 0; c < kOwnInputs; ++c) {
        if (g.out_splits > 1) {
          parts[c * g.out_splits * lines + item] = sums[c];
        } else if (chunk * kOwnInputs + c < g.shape.in_channels) {
          copy_or_add(shared, l, image, (chunk * kOwnInputs + c) * g.plane + place, sums[c]);
        }
      }
    }
    if (g.out_splits == 1) return;
    __syncthreads();
    for (int i = thread_index(); i < g.shape.in_channels * g.plane; i += kConvThreads) {
      const auto [channel, place] = g.by_plane.divide(i);
      const int chunk = channel / kOwnInputs;
      const float* from = parts + (channel % kOwnInputs) * g.out_splits * lines + chunk * g.plane + place;
      float sum = from[0];
      for (int split = 1; split < g.out_splits; ++split) sum += from[split * lines];
      copy_or_add(shared, l, image, i, sum);
    }
  }

  __device__ void add_windows(float* shared, int l, int split, int chunk, int place,
                              float (&sums)[kOwnInputs]) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    const auto [unpadded_y, unpadded_x] = g.by_in_width.divide(place);
    const int y = unpadded_y + s.pad_y, x = unpadded_x + s.pad_x;
    // Output places y − kernel + 1 … y, two to a place of the pooling.
    const int first_y = y < s.kernel_height ? 0 : (y - s.kernel_height + 1) / 2,
              first_x = x < s.kernel_width ? 0 : (x - s.kernel_width + 1) / 2;
    const int last_y = y / 2 < s.pool_height ? y / 2 : s.pool_height - 1,
              last_x = x / 2 < s.pool_width ? x / 2 : s.pool_width - 1;
    const int begin = split * g.out_share, depth = g.in_chunks * kOwnInputs;
    const int end = begin + g.out_share < s.out_channels ? begin + g.out_share : s.out_channels;
    const float* weights = shared + layout.weights[l] + chunk * kOwnInputs;
    for (int o = begin; o < end; ++o) {
      for (int py = first_y; py <= last_y; ++py) {
        for (int px = first_x; px <= last_x; ++px) {
          const Winner argmax = winners(shared, l)[o * g.places + py * s.pool_width + px];
          const int ky = y - argmax.y, kx = x - argmax.x;
          if (ky < 0 || ky >= s.kernel_height || kx < 0 || kx >= s.kernel_width) continue;
          const auto* own = reinterpret_cast<const float4*>(
              weights + ((o * s.kernel_height + ky) * s.kernel_width + kx) * depth);
          for (int quad = 0; quad < kOwnInputs / 4; ++quad) {
            const float4 w = own[quad];
            sums[4 * quad] += argmax.value * w.x;
            sums[4 * quad + 1] += argmax.value * w.y;
            sums[4 * quad + 2] += argmax.value * w.z;
            sums[4 * quad + 3] += argmax.value * w.w;
          }
        }
      }
    }
  }

  // The gradient of element `i` of convolution l's input goes to the one before it, or out.
  __device__ void copy_or_add(float* shared, int l, int image, int i, float gradient) const {
    if (l > 0) {
      set_winner(shared, l - 1, image, i, gradient);
      return;
    }
    const int sample = geometry[0].shape.in_channels * geometry[0].plane;
    float& at = grad_in[static_cast<std::ptrdiff_t>(image) * sample + i];
    at = add ? at + gradient : gradient;
  }

  __device__ void write_sums(float* shared, int l, const RowSums& sums) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    const int rows = s.in_channels * s.kernel_height, weights = s.out_channels * rows * s.kernel_width;
    const int floats = weights + (s.bias ? s.out_channels : 0);
    const int group = thread_index() / g.items, item = thread_index() - group * g.items;
    float* part = arrays[l].gradient + static_cast<std::ptrdiff_t>(blockIdx.x) * floats;
    float* groups = shared + layout.parts;
    __syncthreads();  // What is there may still be read.
    if (group < g.groups) {
      float* to = g.groups > 1 ? groups + group * floats : part;
      for (int kx = 0; kx < kMaxKernelWidth; ++kx) {
        if (kx < s.kernel_width) to[item * s.kernel_width + kx] = sums.weights[kx];
      }
      // The first of an output channel's rows has the channel's bias.
      const int channel = item / rows;
      if (s.bias && item == channel * rows) to[weights + channel] = sums.bias;
    }
    if (g.groups == 1) return;
    __syncthreads();
    for (int i = thread_index(); i < floats; i += kConvThreads) {
      float sum = groups[i];
      for (int other = 1; other < g.groups; ++other) sum += groups[other * floats + i];
      part[i] = sum;
    }
  }
};

}  // namespace

std::size_t conv_pool_backward_bytes(const ConvPoolChain& chain, bool input_gradient) {
  return static_cast<std::size_t>(layout_of(chain, input_gradient).floats) * sizeof(float);
}

int conv_pool_gradient_parts(int images) {
  constexpr int kMax = 264;  // two blocks for each multiprocessor of a large GPU
  return images < kMax ? images : kMax;
}

namespace {

template <int kCount>
void launch_backward(Stream& stream, const ConvPoolChain& chain, int images, int parts,
                     const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out, bool add,
                     float* grad_in) {
  BackwardKernel<kCount> kernel{.images = images,
                                .in = in,
                                .layout = layout_of(chain, grad_in != nullptr),
                                .grad_out = grad_out,
                                .add = add,
                                .grad_in = grad_in};
  for (int l = 0; l < kCount; ++l) {
    kernel.geometry[l] = Geometry(chain.shapes[l]);
    kernel.arrays[l] = arrays[l];
  }
  launch_functor(stream, kernel, {static_cast<unsigned>(parts)},
                 {{kConvThreads}, conv_pool_backward_bytes(chain, grad_in != nullptr)});
}

}  // namespace

void conv_pool_backward(Stream& stream, const ConvPoolChain& chain, int images, int parts,
                        const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out,
                        bool add, float* grad_in) {
  const auto launch_for = chain.count == 1 ? launch_backward<1> : launch_backward<2>;
  launch_for(stream, chain, images, parts, in, arrays, grad_out, add, grad_in);
}

}  // namespace sweep::cuda
