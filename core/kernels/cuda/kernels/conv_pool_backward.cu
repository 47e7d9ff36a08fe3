// The backward kernel of conv_pool.h: gradients of the weights and, where needed, of the input.
//
// Grid: one block of 512 threads per part of the weight gradients, kResidentConvBlocks at most. A block takes
// a fixed range of consecutive images, one after the other, so the order of every sum depends on batch size
// and shapes only. For each image it loads the padded inputs of all convolutions and the gradients of the
// last pooled outputs to shared memory, and goes through the convolutions from last to first.
//
// The gradient of a pooled output belongs to one position of its window, which forward has stored (argmax).
// So the gradient of the convolution's output is sparse: per pooled output one value and the corner of the
// input window it came from (PooledGradient), instead of four values with three zeros.
//
//  - Weights: a thread owns one row of one kernel (out channel, in channel, ky), its kernel_width sums in
//  registers
//    for all images of the block. If there are fewer rows than threads, several threads own a row and divide
//    the pooled positions; their sums are added up in order at the end.
//  - Input: a thread gathers, for one input position and kTaskInputs input channels, from the pooled outputs
//  whose
//    windows may contain it. Nothing is scattered, so no atomics. If there are too few such tasks, the sum
//    over the output channels is split among threads, as in the forward kernel.
#include "core/kernels/cuda/kernels/conv_pool_geometry.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {
namespace {

using Geometry = ConvPoolGeometry;

constexpr int kMaxKernelWidth = 7;  // kernel columns that a thread adds up in registers
constexpr int kTaskInputs = 8;      // input channels per task of the input's gradient; two float4 of weights

// How the threads divide one convolution.
struct Tiling {
  Tiling() = default;
  explicit Tiling(const Geometry& g)
      : kernel_rows(g.shape.out_channels * g.shape.in_channels * g.shape.kernel_height),
        row_owners(kernel_rows < kConvThreads ? kConvThreads / kernel_rows : 1),
        input_groups(ceil_div(g.shape.in_channels, kTaskInputs)),
        split_channels(channels_per_split(g.shape.out_channels, input_groups * g.plane)),
        splits(ceil_div(g.shape.out_channels, split_channels)),
        by_kernel_height(g.shape.kernel_height),
        by_in_channels(g.shape.in_channels),
        by_plane(g.plane),
        by_in_width(g.shape.in_width),
        by_input_group(input_groups) {}

  // Weights: [row_owners][kernel_rows] threads.
  int kernel_rows, row_owners;
  // Input: [splits][input_groups][plane] tasks; a split adds up split_channels output channels.
  int input_groups, split_channels, splits;
  Divisor by_kernel_height, by_in_channels, by_plane, by_in_width, by_input_group;

  // Floats of arrays in shared memory.
  int owner_floats(const ConvPoolShape& s) const {
    return row_owners > 1 ? row_owners * s.gradient_floats() : 0;
  }
  int split_floats(const Geometry& g) const {
    return splits > 1 ? splits * input_groups * g.plane * kTaskInputs : 0;
  }
  int transposed_floats(const ConvPoolShape& s) const {
    return s.out_channels * s.kernel_height * s.kernel_width * input_groups * kTaskInputs;
  }
};

// The gradient of one pooled output, and the corner (y, x) of the window of the padded input that its maximum
// was computed from. Behind a dead relu the corner is so far outside that no position lies in the window.
struct alignas(8) PooledGradient {
  float value;
  std::int16_t y, x;
};
constexpr std::int16_t kNowhere = -(1 << 14);

// Where arrays start in shared memory, in floats.
struct Layout {
  int images[kMaxConvPools];      // [in_channels][padded height][padded width]
  int gradients[kMaxConvPools];   // PooledGradient [out_channels][pooled positions]
  int transposed[kMaxConvPools];  // weights [out][ky][kx][input_groups · kTaskInputs]; where grad_in is
                                  // needed
  int partials;  // [kTaskInputs][splits][input_groups][plane]; in the end [row_owners][gradient_floats()]
  int floats;
};

Layout layout_of(const ConvPoolChain& chain, bool input_gradient) {
  Layout layout{};
  const auto reserve = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  int partials = 0;
  const auto need = [&](int floats) { partials = floats > partials ? floats : partials; };
  for (int l = 0; l < chain.count; ++l) {
    const ConvPoolShape& s = chain.shapes[l];
    const Geometry g(s);
    const Tiling tile(g);
    layout.images[l] = reserve(g.image_floats);
    layout.gradients[l] = reserve(2 * s.outputs());
    need(tile.owner_floats(s));
    if (l == 0 && !input_gradient) continue;
    layout.transposed[l] = reserve(tile.transposed_floats(s));
    need(tile.split_floats(g));
  }
  layout.partials = reserve(partials);
  return layout;
}

// The gradients of one row of a kernel, in the registers of the thread that owns it.
struct RowSums {
  float weights[kMaxKernelWidth] = {};
  float bias = 0.0f;
};

template <int kCount>
struct BackwardKernel {
  static constexpr unsigned kMaxThreads = kConvThreads;

  int images;
  Geometry geometry[kCount] = {};
  Tiling tiling[kCount] = {};
  ConvPoolArrays arrays[kCount] = {};
  ConvPoolInput in;
  Layout layout;
  const float* grad_out;  // [images][outputs of the last convolution]
  bool add;
  float* grad_in;  // [images][inputs of the first], or nullptr
  bool loads_weights_early = false;

  static __device__ int thread_index() { return static_cast<int>(threadIdx.x); }

  __device__ PooledGradient* gradients(float* shared, int l) const {
    return reinterpret_cast<PooledGradient*>(shared + layout.gradients[l]);
  }

  __device__ void load_early() const {
    if (loads_weights_early) transpose_weights(dynamic_shared<float>());
  }

  __device__ void transpose_weights(float* shared) const {
    for (int l = grad_in != nullptr ? 0 : 1; l < kCount; ++l)
      transpose_weights(l, shared + layout.transposed[l]);
  }

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    if (!loads_weights_early) transpose_weights(shared);
    RowSums sums[kCount];
    const SumRange range = part_of(images, static_cast<int>(gridDim.x), static_cast<int>(blockIdx.x));
    for (int image = range.begin; image < range.end; ++image) {
      __syncthreads();  // threads may still read the previous image
      load(shared, image);
      __syncthreads();
      backward_from<kCount - 1>(shared, image, sums);
    }
    write_sums(shared, 0, sums[0]);
    if constexpr (kCount > 1) write_sums(shared, 1, sums[1]);
  }

  // The gradients of convolution l, and of those before it.
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

  // [out][in][ky][kx] → [out][ky][kx][in], filled up with zeros: a task reads the weights of its kTaskInputs
  // channels as two float4.
  __device__ void transpose_weights(int l, float* to) const {
    const ConvPoolShape& s = geometry[l].shape;
    const float* from = arrays[l].weight;
    const int kernel = s.kernel_height * s.kernel_width, depth = tiling[l].input_groups * kTaskInputs;
    for (int i = thread_index(); i < s.out_channels * kernel * depth; i += kConvThreads) {
      const int tap = i / depth, c = i - tap * depth, o = tap / kernel, k = tap - o * kernel;
      to[i] = c < s.in_channels ? from[(o * s.in_channels + c) * kernel + k] : 0.0f;
    }
  }

  // The inputs of all convolutions, and the gradients of the last pooled outputs.
  __device__ void load(float* shared, int image) const {
    for (int l = 0; l < kCount; ++l) {
      ConvPoolInput from = in;
      if (l > 0) from = {.floats = arrays[l - 1].out};
      load_image(geometry[l], from, image, shared + layout.images[l]);
    }
    const int outputs = geometry[kCount - 1].shape.out_channels * geometry[kCount - 1].pooled_plane;
    for (int i = thread_index(); i < outputs; i += kConvThreads)
      set_gradient(shared, kCount - 1, image, i, grad_out[image * outputs + i]);
  }

  // Stores the gradient of pooled output `i` of convolution l, with the corner of its window.
  __device__ void set_gradient(float* shared, int l, int image, int i, float gradient) const {
    const Geometry& g = geometry[l];
    const auto [y, x] = g.by_pool_width.divide(g.by_pooled_plane.divide(i).remainder);
    const int argmax = arrays[l].argmax[image * g.shape.out_channels * g.pooled_plane + i];
    gradients(shared, l)[i] = argmax == kDeadRelu
                                  ? PooledGradient{0.0f, kNowhere, kNowhere}
                                  : PooledGradient{gradient, static_cast<std::int16_t>(2 * y + argmax / 2),
                                                   static_cast<std::int16_t>(2 * x + argmax % 2)};
  }

  // Adds one image to the thread's kernel row: of each pooled position that it is in charge of, the gradient
  // times the inputs under the row.
  __device__ void add_row(float* shared, int l, RowSums& sums) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    const Tiling& tile = tiling[l];
    const int owner = thread_index() / tile.kernel_rows, row = thread_index() - owner * tile.kernel_rows;
    if (owner >= tile.row_owners) return;
    const auto [channels, ky] = tile.by_kernel_height.divide(row);
    const auto [out_channel, in_channel] = tile.by_in_channels.divide(channels);
    const int width = s.in_width + 2 * s.pad_x;
    const float* from =
        shared + layout.images[l] + in_channel * (s.in_height + 2 * s.pad_y) * width + ky * width;
    const PooledGradient* pooled = gradients(shared, l) + out_channel * g.pooled_plane;
    for (int position = owner; position < g.pooled_plane; position += tile.row_owners) {
      const PooledGradient gradient = pooled[position];
      if (gradient.y == kNowhere) continue;
      const float* inputs = from + gradient.y * width + gradient.x;
      for (int kx = 0; kx < kMaxKernelWidth; ++kx) {
        if (kx < s.kernel_width) sums.weights[kx] += gradient.value * inputs[kx];
      }
      sums.bias += gradient.value;
    }
  }

  // The gradient of convolution l's input, which pass_back() takes. Ends without a barrier.
  __device__ void write_input_gradient(float* shared, int l, int image) const {
    const Geometry& g = geometry[l];
    const Tiling& tile = tiling[l];
    float* partials = shared + layout.partials;
    const int tasks = tile.input_groups * g.plane;
    for (int task = thread_index(); task < tile.splits * tasks; task += kConvThreads) {
      const auto [split_and_group, position] = tile.by_plane.divide(task);
      const auto [split, group] = tile.by_input_group.divide(split_and_group);
      float sums[kTaskInputs] = {};
      add_windows(shared, l, split, group, position, sums);
      for (int c = 0; c < kTaskInputs; ++c) {
        if (tile.splits > 1) {
          partials[c * tile.splits * tasks + task] = sums[c];
        } else if (group * kTaskInputs + c < g.shape.in_channels) {
          pass_back(shared, l, image, (group * kTaskInputs + c) * g.plane + position, sums[c]);
        }
      }
    }
    if (tile.splits == 1) return;
    __syncthreads();
    for (int i = thread_index(); i < g.shape.in_channels * g.plane; i += kConvThreads) {
      const auto [channel, position] = tile.by_plane.divide(i);
      const int group = channel / kTaskInputs;
      const float* from =
          partials + (channel % kTaskInputs) * tile.splits * tasks + group * g.plane + position;
      float sum = from[0];
      for (int split = 1; split < tile.splits; ++split) sum += from[split * tasks];
      pass_back(shared, l, image, i, sum);
    }
  }

  // Adds to `sums`, for input channels kTaskInputs · group … and one input position, the gradients of all
  // pooled outputs of the split's output channels whose window contains the position, times the weight at
  // that offset.
  __device__ void add_windows(float* shared, int l, int split, int group, int position,
                              float (&sums)[kTaskInputs]) const {
    const Geometry& g = geometry[l];
    const ConvPoolShape& s = g.shape;
    const Tiling& tile = tiling[l];
    const auto [unpadded_y, unpadded_x] = tile.by_in_width.divide(position);
    const int y = unpadded_y + s.pad_y, x = unpadded_x + s.pad_x;
    // The convolution outputs y − kernel + 1 … y see the position; a pooled output stands for two of them.
    const int first_y = y < s.kernel_height ? 0 : (y - s.kernel_height + 1) / 2,
              first_x = x < s.kernel_width ? 0 : (x - s.kernel_width + 1) / 2;
    const int last_y = y / 2 < s.pool_height ? y / 2 : s.pool_height - 1,
              last_x = x / 2 < s.pool_width ? x / 2 : s.pool_width - 1;
    const int begin = split * tile.split_channels, depth = tile.input_groups * kTaskInputs;
    const int end =
        begin + tile.split_channels < s.out_channels ? begin + tile.split_channels : s.out_channels;
    const float* weights = shared + layout.transposed[l] + group * kTaskInputs;
    for (int o = begin; o < end; ++o) {
      for (int py = first_y; py <= last_y; ++py) {
        for (int px = first_x; px <= last_x; ++px) {
          const PooledGradient gradient = gradients(shared, l)[o * g.pooled_plane + py * s.pool_width + px];
          const int ky = y - gradient.y, kx = x - gradient.x;
          if (ky < 0 || ky >= s.kernel_height || kx < 0 || kx >= s.kernel_width) continue;
          const auto* quads = reinterpret_cast<const float4*>(
              weights + ((o * s.kernel_height + ky) * s.kernel_width + kx) * depth);
          for (int quad = 0; quad < kTaskInputs / 4; ++quad) {
            const float4 w = quads[quad];
            sums[4 * quad] += gradient.value * w.x;
            sums[4 * quad + 1] += gradient.value * w.y;
            sums[4 * quad + 2] += gradient.value * w.z;
            sums[4 * quad + 3] += gradient.value * w.w;
          }
        }
      }
    }
  }

  // Hands the gradient of element `i` of convolution l's input to the convolution before it, or writes
  // grad_in.
  __device__ void pass_back(float* shared, int l, int image, int i, float gradient) const {
    if (l > 0) {
      set_gradient(shared, l - 1, image, i, gradient);
      return;
    }
    const int sample = geometry[0].shape.in_channels * geometry[0].plane;
    float& result = grad_in[static_cast<std::ptrdiff_t>(image) * sample + i];
    result = add ? result + gradient : gradient;
  }

  // Writes the block's part of convolution l's gradient, after the last image.
  __device__ void write_sums(float* shared, int l, const RowSums& sums) const {
    const Tiling& tile = tiling[l];
    const ConvPoolShape& s = geometry[l].shape;
    const int rows = s.in_channels * s.kernel_height, weights = s.out_channels * rows * s.kernel_width;
    const int floats = weights + (s.bias ? s.out_channels : 0);
    const int owner = thread_index() / tile.kernel_rows, row = thread_index() - owner * tile.kernel_rows;
    float* part = arrays[l].gradient + static_cast<std::ptrdiff_t>(blockIdx.x) * floats;
    float* owners = shared + layout.partials;
    __syncthreads();  // threads may still read the partial sums of the last image, or of another convolution
    if (owner < tile.row_owners) {
      float* to = tile.row_owners > 1 ? owners + owner * floats : part;
      for (int kx = 0; kx < kMaxKernelWidth; ++kx) {
        if (kx < s.kernel_width) to[row * s.kernel_width + kx] = sums.weights[kx];
      }
      // Every row of an output channel has added up the channel's bias gradient; the first row writes it.
      const int channel = row / rows;
      if (s.bias && row == channel * rows) to[weights + channel] = sums.bias;
    }
    if (tile.row_owners == 1) return;
    __syncthreads();
    for (int i = thread_index(); i < floats; i += kConvThreads) {
      float sum = owners[i];
      for (int other = 1; other < tile.row_owners; ++other) sum += owners[other * floats + i];
      part[i] = sum;
    }
  }
};

}  // namespace

bool conv_pool_backward_fits(const ConvPoolShape& shape) {
  return shape.kernel_width <= kMaxKernelWidth && Tiling(Geometry(shape)).kernel_rows <= kConvThreads;
}

std::size_t conv_pool_backward_bytes(const ConvPoolChain& chain, bool input_gradient) {
  return static_cast<std::size_t>(layout_of(chain, input_gradient).floats) * sizeof(float);
}

int conv_pool_gradient_parts(int images) {
  return images < kResidentConvBlocks ? images : kResidentConvBlocks;
}

namespace {

// kCount: convolutions of the chain, a constant so that their sums stay in registers.
template <int kCount>
void launch_backward(Stream& stream, const ConvPoolChain& chain, int images, int parts,
                     const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out, bool add,
                     float* grad_in) {
  BackwardKernel<kCount> kernel{.images = images,
                                .in = in,
                                .layout = layout_of(chain, grad_in != nullptr),
                                .grad_out = grad_out,
                                .add = add,
                                .grad_in = grad_in,
                                .loads_weights_early = stream.may_load_early(Changes::kParameters)};
  for (int l = 0; l < kCount; ++l) {
    kernel.geometry[l] = Geometry(chain.shapes[l]);
    kernel.tiling[l] = Tiling(kernel.geometry[l]);
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
