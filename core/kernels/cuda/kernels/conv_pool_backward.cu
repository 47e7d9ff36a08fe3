// The backward kernel of conv_pool.h: gradients of the weights and, where needed, of the input.
//
// Grid: a block of 384 threads per slice of the weight gradients, kResidentConvBlocks at most. A block takes
// a fixed range of consecutive images, one after the other, so the order of every sum depends on batch size
// and shapes only. For each image it goes through the convolutions from last to first: the weight gradient
// (conv_pool_weight_gradient.h), which stays in registers until the last image, and the gradient of the input
// (conv_pool_input_gradient.h), which is the gradient of the pooled outputs of the convolution before.
//
// The gradient of a pooled output belongs to one position of its window, which forward has stored (argmax).
// So the gradient of the convolution's output is sparse: one value and one position per pooled output.
//
// What an image needs from device memory is on its way while the block computes: the next image is asked for
// before the first convolution's weight gradient, which is the last work of an image. Pixels, which come by
// way of two reads of device memory, are awaited only when the first convolution needs them.
//
// Two blocks fit on a multiprocessor (80 registers), so that one computes while the other waits at a barrier.
// A convolution with more kernel rows than threads has a block of 512 threads, which is alone there.
#include "core/kernels/cuda/kernels/conv_pool.h"

#include "core/kernels/cuda/kernels/conv_pool_input_gradient.h"
#include "core/kernels/cuda/kernels/conv_pool_weight_gradient.h"
#include "core/kernels/cuda/kernels/product.h"

namespace sweep::cuda {
namespace {

// One convolution: its sizes, and how threads and shared memory are divided.
struct Convolution {
  Convolution() = default;
  explicit Convolution(const ConvPoolShape& s)
      : shape(s),
        image(weight_gradient_image(s)),
        weight_threads(s),
        input_sums(s),
        by_positions(s.pool_height * s.pool_width),
        by_pool_width(s.pool_width) {}

  ConvPoolShape shape;
  PaddedImage image;
  WeightGradientThreads weight_threads;
  InputGradientSums input_sums;
  Divisor by_positions, by_pool_width;
};

// Where arrays start in shared memory, in floats.
struct Layout {
  int images[kMaxConvPools];   // PaddedImage
  int windows[kMaxConvPools];  // WindowGradient [out_channels][window_stride]
  int argmax[kMaxConvPools];   // bytes [argmax_bytes()]
  // Where the gradient of the input is needed: the weights as in device memory, and the gradients of all
  // windows, float4 [out_channels][InputGradientSums::window_stride()].
  int weights[kMaxConvPools], all_windows[kMaxConvPools];
  int grad_out;  // [outputs()] of the last convolution
  int zeros;     // a FloatPair
  int sums;      // InputGradientSums; in the end the slices of the weight gradient
  int floats;
};

Layout layout_of(const ConvPoolChain& chain, bool input_gradient) {
  Layout layout{};
  const auto reserve = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  int sums = 0;
  const auto need = [&sums](int floats) { sums = floats > sums ? floats : sums; };
  for (int l = 0; l < chain.count; ++l) {
    const ConvPoolShape& s = chain.shapes[l];
    layout.images[l] = reserve(weight_gradient_image(s).floats);
    layout.windows[l] = reserve(WeightGradientThreads(s).window_floats(s));
    layout.argmax[l] = reserve(s.argmax_bytes() / static_cast<int>(sizeof(float)));
    need(WeightGradientThreads(s).sum_floats(s));
    if (l == 0 && !input_gradient) continue;
    layout.weights[l] = reserve(s.weights());
    layout.all_windows[l] = reserve(InputGradientSums(s).window_floats(s));
    need(InputGradientSums(s).floats());
  }
  layout.grad_out = reserve(chain.shapes[chain.count - 1].outputs());
  layout.zeros = reserve(2);
  layout.sums = reserve(sums);
  return layout;
}

// kCount: convolutions. kKernel: width and height of all their kernels, so that loops over them are unrolled.
template <int kCount, int kKernel, int kThreadCount>
struct BackwardKernel {
  static constexpr unsigned kMaxThreads = kThreadCount;
  static constexpr unsigned kResidentBlocks = kThreadCount == kConvBackwardThreads ? 2 : 1;
  static constexpr int kLast = kCount - 1;
  using RowGradient = KernelRowGradient<kKernel>;
  using Pixels = ImageInFlight<3>;  // 28 × 28 of 384 threads

  int images;
  Convolution convolutions[kCount] = {};
  ConvPoolArrays arrays[kCount] = {};
  ConvPoolInput in;
  Layout layout;
  const float* grad_out;  // [images][outputs of the last convolution]
  bool add;
  float* grad_in;  // [images][inputs of the first], or nullptr

  static __device__ int thread_index() { return static_cast<int>(threadIdx.x); }

  __device__ RowGradient row_gradient(int l) const {
    const Convolution& c = convolutions[l];
    return {c.shape, c.image, c.weight_threads, layout.images[l], layout.windows[l]};
  }

  __device__ void clear(float* shared) const {
    for (int l = 0; l < kCount; ++l) {
      const Convolution& c = convolutions[l];
      fill_with_zeros(shared + layout.images[l], c.image.floats, kThreadCount);
      fill_with_zeros(shared + layout.windows[l], c.weight_threads.window_floats(c.shape), kThreadCount);
      if (l == 0 && grad_in == nullptr) continue;
      fill_with_zeros(shared + layout.all_windows[l], c.input_sums.window_floats(c.shape), kThreadCount);
    }
    fill_with_zeros(shared + layout.zeros, 2, kThreadCount);
  }

  __device__ void load_weights(float* shared) const {
    for (int l = grad_in != nullptr ? 0 : 1; l < kCount; ++l)
      copy_array(shared + layout.weights[l], arrays[l].weight, convolutions[l].shape.weights(), kThreadCount);
  }

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    const SumRange range = slice_of(images, static_cast<int>(gridDim.x), static_cast<int>(blockIdx.x));
    clear(shared);
    __syncthreads();
    Pixels pixels;
    if (range.begin < range.end) {
      if (kCount == 1) pixels.load(convolutions[0].image, in, range.begin, kThreadCount);
      start_to_copy(shared, range.begin);
    }
    load_weights(shared);
    RowGradient first = row_gradient(0);
    RowGradient second = row_gradient(kLast);  // of two
    for (int image = range.begin; image < range.end; ++image) {
      if (kCount > 1) pixels.load(convolutions[0].image, in, image, kThreadCount);
      wait_for_copies();
      __syncthreads();  // behind it the previous image is done, and this one's copies have arrived
      const Convolution& last = convolutions[kLast];
      for (int i = thread_index(); i < last.shape.outputs(); i += kThreadCount) {
        const auto [channel, position] = last.by_positions.divide(i);
        const auto [y, x] = last.by_pool_width.divide(position);
        set_gradient(shared, kLast, channel, y, x, shared[layout.grad_out + i]);
      }
      if constexpr (kCount == 1) store_pixels(shared, image, pixels);
      __syncthreads();
      if constexpr (kCount > 1) {
        second.add_image(convolutions[kLast].weight_threads, shared);
        store_pixels(shared, image, pixels);
        pass_back(shared, kLast, image);
        __syncthreads();
      }
      if (image + 1 < range.end) {
        start_to_copy(shared, image + 1);
        if (kCount == 1) pixels.load(convolutions[0].image, in, image + 1, kThreadCount);
      }
      first.add_image(convolutions[0].weight_threads, shared);
      if (grad_in != nullptr) pass_back(shared, 0, image);
    }
    wait_for_copies();  // of a block without images
    write_gradient(shared, 0, first);
    if constexpr (kCount > 1) write_gradient(shared, kLast, second);
  }

  // Asks for all that image `image` needs but the pixels. Nobody reads these arrays of the image before any
  // more.
  __device__ void start_to_copy(float* shared, int image) const {
    const ConvPoolShape& last = convolutions[kLast].shape;
    copy_array(shared + layout.grad_out, grad_out + static_cast<std::ptrdiff_t>(image) * last.outputs(),
               last.outputs(), kThreadCount);
    for (int l = 0; l < kCount; ++l) {
      const int bytes = convolutions[l].shape.argmax_bytes();
      copy_array(
          shared + layout.argmax[l],
          reinterpret_cast<const float*>(arrays[l].argmax + static_cast<std::ptrdiff_t>(image) * bytes),
          bytes / static_cast<int>(sizeof(float)), kThreadCount);
    }
    for (int l = 1; l < kCount; ++l) {
      const PaddedImage& to = convolutions[l].image;
      const float* from = arrays[l - 1].out + static_cast<std::ptrdiff_t>(image) * to.elements;
      for (int i = thread_index(); i < to.elements; i += kThreadCount)
        copy_async(shared + layout.images[l] + to.element(i).offset, from + i);
    }
  }

  __device__ void store_pixels(float* shared, int image, const Pixels& pixels) const {
    pixels.store(convolutions[0].image, in, image, kThreadCount, shared + layout.images[0]);
  }

  // Stores the gradient of the pooled output (channel, y, x) of convolution l.
  __device__ void set_gradient(float* shared, int l, int channel, int y, int x, float gradient) const {
    const Convolution& c = convolutions[l];
    const int position = y * c.shape.pool_width + x,
              i = channel * c.shape.pool_height * c.shape.pool_width + position;
    const int argmax = reinterpret_cast<const std::uint8_t*>(shared + layout.argmax[l])[i];
    const int down = argmax / 2, right = argmax % 2;
    const bool dead = argmax == kDeadRelu;
    reinterpret_cast<WindowGradient*>(
        shared + layout.windows[l])[channel * c.weight_threads.window_stride + position] =
        dead ? WindowGradient{0.0f, 0}
             : WindowGradient{gradient, (2 * y + down) * c.image.row_stride + 2 * x + right};
    if (l == 0 && grad_in == nullptr) return;
    const auto of_window = [&](int window) { return argmax == window ? gradient : 0.0f; };
    reinterpret_cast<float4*>(shared +
                              layout.all_windows[l])[channel * c.input_sums.window_stride() + position] = {
        of_window(0), of_window(1), of_window(2), of_window(3)};
  }

  // Hands the gradient of convolution l's input to the convolution before it, or writes grad_in. Ends without
  // a barrier.
  __device__ void pass_back(float* shared, int l, int image) const {
    const Convolution& c = convolutions[l];
    float* sums = shared + layout.sums;
    for (int channel = 0; channel < c.shape.in_channels; channel += c.input_sums.group_channels) {
      if (channel > 0) __syncthreads();  // the sums of the previous group are still read
      spread_windows<kKernel, kThreadCount>(c.shape, c.input_sums, channel, shared + layout.weights[l],
                                            reinterpret_cast<const float4*>(shared + layout.all_windows[l]),
                                            sums);
      __syncthreads();
      collect<kKernel, kThreadCount>(c.shape, c.input_sums, channel, sums, shared + layout.zeros,
                                     [&](int in_channel, int y, int x, float gradient) {
                                       if (l > 0) {
                                         set_gradient(shared, l - 1, in_channel, y, x, gradient);
                                       } else {
                                         float& result =
                                             grad_in[static_cast<std::ptrdiff_t>(image) * c.image.elements +
                                                     in_channel * c.image.plane + y * c.shape.in_width + x];
                                         result = add ? result + gradient : gradient;
                                       }
                                     });
    }
  }

  // Writes the block's slice of convolution l's gradient.
  __device__ void write_gradient(float* shared, int l, const RowGradient& gradient) const {
    const Convolution& c = convolutions[l];
    gradient.write(c.shape, c.weight_threads, shared + layout.sums,
                   arrays[l].gradient + static_cast<std::ptrdiff_t>(blockIdx.x) * c.shape.gradient_floats());
  }
};

template <int kCount, int kKernel, int kThreadCount>
void launch_backward(Stream& stream, const ConvPoolChain& chain, int images, int slices,
                     const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out, bool add,
                     float* grad_in) {
  BackwardKernel<kCount, kKernel, kThreadCount> kernel{.images = images,
                                                       .in = in,
                                                       .layout = layout_of(chain, grad_in != nullptr),
                                                       .grad_out = grad_out,
                                                       .add = add,
                                                       .grad_in = grad_in};
  for (int l = 0; l < kCount; ++l) {
    kernel.convolutions[l] = Convolution(chain.shapes[l]);
    kernel.arrays[l] = arrays[l];
  }
  launch_functor(stream, kernel, {static_cast<unsigned>(slices)},
                 {{kThreadCount}, conv_pool_backward_bytes(chain, grad_in != nullptr)});
}

template <int kKernel, int kThreadCount>
auto launch_for(int count) {
  return count == 1 ? launch_backward<1, kKernel, kThreadCount> : launch_backward<2, kKernel, kThreadCount>;
}

}  // namespace

bool conv_pool_backward_fits(const ConvPoolShape& shape) {
  return (shape.kernel_width == 3 || shape.kernel_width == 5) && shape.kernel_height == shape.kernel_width &&
         shape.out_channels * shape.in_channels * shape.kernel_height <= kWideConvBackwardThreads;
}

std::size_t conv_pool_backward_bytes(const ConvPoolChain& chain, bool input_gradient) {
  return static_cast<std::size_t>(layout_of(chain, input_gradient).floats) * sizeof(float);
}

int conv_pool_gradient_slices(int images) {
  return images < kResidentConvBlocks ? images : kResidentConvBlocks;
}

void conv_pool_backward(Stream& stream, const ConvPoolChain& chain, int images, int slices,
                        const ConvPoolInput& in, const ConvPoolArrays* arrays, const float* grad_out,
                        bool add, float* grad_in) {
  int threads = kConvBackwardThreads;
  for (int l = 0; l < chain.count; ++l) {
    const int wanted = WeightGradientThreads(chain.shapes[l]).threads;
    threads = wanted > threads ? wanted : threads;
  }
  constexpr int kFew = kConvBackwardThreads, kMany = kWideConvBackwardThreads;
  const bool wide = chain.shapes[0].kernel_width == 5;
  const auto launch = threads > kFew ? (wide ? launch_for<5, kMany> : launch_for<3, kMany>)
                                     : (wide ? launch_for<5, kFew> : launch_for<3, kFew>);
  launch(chain.count)(stream, chain, images, slices, in, arrays, grad_out, add, grad_in);
}

}  // namespace sweep::cuda
