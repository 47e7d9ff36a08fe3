#include "core/kernels/cuda/kernels/linear_stack.h"

#include "core/kernels/cuda/kernels/activation.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/kernels/sample_loss.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

constexpr int kStackThreads = 512;
constexpr int kQuad = 4;   // samples per thread
constexpr int kParts = 4;  // of each sum: short layers would leave most threads idle, and sums are waits
constexpr int kLargestTile = 16;

int rounded_up(int count) { return ceil_div(count, kQuad) * kQuad; }

// Where arrays lie in shared memory, in floats. Those of samples are [tile / 4][features][4]: a thread reads
// and writes four samples at once, and neighbouring threads neighbouring features.
struct Layout {
  int weights[kMostStackLayers];     // [outputs][row], and the biases [outputs]
  int rows[kMostStackLayers];        // floats from one output's weights to the next's
  int values[kMostStackLayers + 1];  // inputs, and outputs of the layers
  int grads[kMostStackLayers];       // forward, outputs before the activation; backward, their gradients
  int partials;                      // [kParts] of the widest
  int samples;                       // [tile] each: peaks, totals, labels
  int sums;                          // [tile] doubles, then [tile] ints
  int floats;
};

Layout layout_of(const LinearStackShape& shape, int tile) {
  Layout layout{};
  const auto take = [&layout](int floats) { return take_floats(layout.floats, floats); };
  layout.values[0] = take(tile * shape.layers[0].inputs);
  int widest = 0;
  for (int l = 0; l < shape.count; ++l) {
    const StackLayer& layer = shape.layers[l];
    // An odd number of quads: threads that read quads of neighbouring rows find them in different banks.
    const int row = rounded_up(layer.inputs);
    layout.rows[l] = row / kQuad % 2 == 0 ? row + kQuad : row;
    layout.weights[l] = take(layer.outputs * layout.rows[l] + layer.outputs);
    layout.values[l + 1] = take(tile * layer.outputs);
    layout.grads[l] = take(tile * layer.outputs);
    widest = layer.inputs > widest ? layer.inputs : widest;
    widest = layer.outputs > widest ? layer.outputs : widest;
  }
  layout.partials = take(kParts * tile * widest);
  layout.samples = take(3 * tile);
  layout.sums = take(3 * tile);
  return layout;
}

__device__ void add_product(float4& sum, float weight, const float4& values) {
  sum.x += weight * values.x;
  sum.y += weight * values.y;
  sum.z += weight * values.z;
  sum.w += weight * values.w;
}

__device__ int thread_index() { return static_cast<int>(threadIdx.x); }

struct StackKernel {
  static constexpr unsigned kMostThreads = kStackThreads;

  LinearStackShape shape;
  LinearStackArrays arrays;
  Layout layout;
  SampleLoss loss;
  int images, tile, groups;  // groups: of four samples, in a tile
  const StepInput* input;
  const std::uint32_t* rows;
  Normalisation normalisation;
  int plane;
  bool backward;
  DeviceTotals* totals;  // nullptr: no loss

  __device__ void operator()() const {
    auto* shared = launched_shared<float>();
    load_weights(shared);
    const int own = thread_index();
    double nats = 0;  // of the thread's sample, the first threads having one each
    int correct = 0;
    for (int first = static_cast<int>(blockIdx.x) * tile; first < images;
         first += static_cast<int>(gridDim.x) * tile) {
      load_inputs(shared, first);
      wait_for_copies();
      __syncthreads();
      for (int l = 0; l < shape.count; ++l) forward_layer(shared, l, first);
      if (totals == nullptr) continue;
      add_losses(shared, first, nats, correct);
      if (!backward) continue;
      write_loss_gradient(shared, first);
      for (int l = shape.count - 1; l >= 0; --l) {
        if (l > 0 || arrays.grad_in != nullptr) backward_layer(shared, l, first);
      }
    }
    if (totals == nullptr) return;
    auto* sums = reinterpret_cast<double*>(shared + layout.sums);
    auto* counts = reinterpret_cast<int*>(shared + layout.sums + 2 * tile);
    if (own < tile) {
      sums[own] = nats;
      counts[own] = correct;
    }
    __syncthreads();
    if (own > 0) return;
    DeviceTotals& to = totals[blockIdx.x];
    for (int s = 0; s < tile; ++s) {
      to.loss += sums[s];
      to.correct += counts[s];
    }
    if (blockIdx.x == 0) to.samples += images;
  }

  __device__ void load_weights(float* shared) const {
    constexpr int kWarp = 32;
    const int warp = thread_index() / kWarp, lane = thread_index() % kWarp;
    for (int l = 0; l < shape.count; ++l) {
      const StackLayer& layer = shape.layers[l];
      float* to = shared + layout.weights[l];
      for (int n = warp; n < layer.outputs; n += kStackThreads / kWarp) {
        const float* from = arrays.layers[l].weight + n * layer.inputs;
        for (int k = lane; k < layer.inputs; k += kWarp) copy_async(to + n * layout.rows[l] + k, from + k);
      }
      float* biases = to + layer.outputs * layout.rows[l];
      const float* bias = arrays.layers[l].bias;
      for (int n = thread_index(); n < layer.outputs; n += kStackThreads)
        biases[n] = bias == nullptr ? 0.0f : bias[n];
    }
  }

  __device__ void load_inputs(float* shared, int first) const {
    const int inputs = shape.layers[0].inputs;
    auto* values = reinterpret_cast<float4*>(shared + layout.values[0]);
    for (int i = thread_index(); i < inputs * groups; i += kStackThreads) {
      const int group = i / inputs, k = i - group * inputs;
      float value[kQuad];
      for (int s = 0; s < kQuad; ++s) {
        const int image = first + kQuad * group + s;
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(image) * inputs + k;
        if (image >= images) {
          value[s] = 0.0f;
        } else if (arrays.in != nullptr) {
          value[s] = arrays.in[at];
        } else {
          const std::uint8_t* bytes =
              input->pixels + static_cast<std::size_t>(rows[image]) * static_cast<std::size_t>(inputs);
          value[s] = pixel_value(bytes, k, plane, normalisation);
          if (arrays.pixels != nullptr) arrays.pixels[at] = value[s];
        }
      }
      values[i] = {value[0], value[1], value[2], value[3]};
    }
  }

  // to[image][feature] of the images that there are.
  __device__ void write(float* to, int features, int first, int group, int feature,
                        const float (&value)[kQuad]) const {
    for (int s = 0; s < kQuad; ++s) {
      const int image = first + kQuad * group + s;
      if (image < images) to[static_cast<std::ptrdiff_t>(image) * features + feature] = value[s];
    }
  }

  // Number i of `count` sums, from its parts.
  static __device__ void add_parts(const float4* partials, int count, int i, float (&sum)[kQuad]) {
    float4 total = partials[i];
    for (int part = 1; part < kParts; ++part) add_product(total, 1.0f, partials[part * count + i]);
    sum[0] = total.x;
    sum[1] = total.y;
    sum[2] = total.z;
    sum[3] = total.w;
  }

  __device__ void forward_layer(float* shared, int l, int first) const {
    const StackLayer& layer = shape.layers[l];
    const int inputs = layer.inputs, outputs = layer.outputs, row = layout.rows[l];
    const float* weights = shared + layout.weights[l];
    const auto* in = reinterpret_cast<const float4*>(shared + layout.values[l]);
    auto* partials = reinterpret_cast<float4*>(shared + layout.partials);
    const int share = ceil_div(ceil_div(inputs, kQuad), kParts) * kQuad, count = outputs * groups;
    for (int i = thread_index(); i < kParts * count; i += kStackThreads) {
      const int line = i / outputs, n = i - line * outputs, part = line / groups,
                group = line - part * groups;
      const int begin = part * share, end = begin + share < inputs ? begin + share : inputs;
      const float* own = weights + n * row;
      const float4* values = in + group * inputs;
      float4 sum{};
      int k = begin;
      for (; k + kQuad <= end; k += kQuad) {
        const float4 w = *reinterpret_cast<const float4*>(own + k);
        add_product(sum, w.x, values[k]);
        add_product(sum, w.y, values[k + 1]);
        add_product(sum, w.z, values[k + 2]);
        add_product(sum, w.w, values[k + 3]);
      }
      for (; k < end; ++k) add_product(sum, own[k], values[k]);
      partials[i] = sum;
    }
    __syncthreads();
    auto* out = reinterpret_cast<float4*>(shared + layout.values[l + 1]);
    auto* before = reinterpret_cast<float4*>(shared + layout.grads[l]);
    for (int i = thread_index(); i < count; i += kStackThreads) {
      const int group = i / outputs, n = i - group * outputs;
      const float bias = weights[outputs * row + n];
      float value[kQuad];
      add_parts(partials, count, i, value);
      for (float& x : value) x += bias;
      if (layer.active) {
        before[i] = {value[0], value[1], value[2], value[3]};
        for (float& x : value) x = value_of(layer.activation, layer.coefficient, x);
      }
      out[i] = {value[0], value[1], value[2], value[3]};
      if (arrays.layers[l].out != nullptr) write(arrays.layers[l].out, outputs, first, group, n, value);
    }
    __syncthreads();
  }

  // Of the last layer: element c of sample s is at first_of(s) + kQuad · c.
  __device__ int first_of(int sample) const { return sample / kQuad * loss.classes * kQuad + sample % kQuad; }

  // The exponentials stay in the array of parts, for the gradient.
  __device__ void add_losses(float* shared, int first, double& nats, int& correct) const {
    const int own = thread_index(), classes = loss.classes;
    const float* outputs = shared + layout.values[shape.count];
    float *powers = shared + layout.partials, *peaks = shared + layout.samples, *sums = peaks + tile;
    auto* labels = reinterpret_cast<int*>(sums + tile);
    const bool has_sample = own < tile && first + own < images;
    const bool cross_entropy = loss.kind == LossOptions::Kind::kCrossEntropy;
    if (own < tile) {
      const Best best = largest(outputs + first_of(own), classes, kQuad);
      const int label = has_sample ? input->labels[rows[first + own]] : -1;
      peaks[own] = best.value;
      labels[own] = label;
      correct += best.index == label ? 1 : 0;
    }
    __syncthreads();
    if (cross_entropy) {
      for (int i = own; i < classes * tile; i += kStackThreads) {
        const int sample = i / (kQuad * classes) * kQuad + i % kQuad;
        powers[i] = expf(outputs[i] - peaks[sample]);
      }
      __syncthreads();
    }
    if (!has_sample) return;
    const int at = first_of(own), label = labels[own];
    float total = 0.0f, sum = 0.0f;
    for (int c = 0; c < classes; ++c) {
      if (cross_entropy) {
        total += powers[at + kQuad * c];
        sum += outputs[at + kQuad * c] - peaks[own];
      } else {
        const float error = loss.error(outputs[at + kQuad * c], c, label);
        total += error * error;
      }
    }
    sums[own] = total;
    nats += static_cast<double>(
        cross_entropy ? loss.cross_entropy(outputs[at + kQuad * label] - peaks[own], sum, logf(total))
                      : total * loss.share());
  }

  __device__ void write_loss_gradient(float* shared, int first) const {
    const int classes = loss.classes;
    const StackLayer& layer = shape.layers[shape.count - 1];
    const float *outputs = shared + layout.values[shape.count], *powers = shared + layout.partials,
                *sums = shared + layout.samples + tile;
    const auto* labels = reinterpret_cast<const int*>(sums + tile);
    float *grads = shared + layout.grads[shape.count - 1], *to = arrays.layers[shape.count - 1].grad;
    const float scale = 1.0f / static_cast<float>(images);
    __syncthreads();  // the sums
    for (int i = thread_index(); i < classes * tile; i += kStackThreads) {
      const int quad = i / kQuad, group = quad / classes, c = quad - group * classes;
      const int sample = kQuad * group + i % kQuad, label = labels[sample];
      if (first + sample >= images) {
        grads[i] = 0.0f;
        continue;
      }
      float g = loss.kind == LossOptions::Kind::kCrossEntropy
                    ? (powers[i] / sums[sample] - loss.target(c, label)) * scale
                    : loss.error(outputs[i], c, label) * (2.0f * loss.share() * scale);
      if (layer.active) g = gradient_of(layer.activation, layer.coefficient, g, grads[i], outputs[i]);
      grads[i] = g;
      to[static_cast<std::ptrdiff_t>(first + sample) * classes + c] = g;
    }
    __syncthreads();
  }

  // The gradient of layer l's input, before the activation of the layer below.
  __device__ void backward_layer(float* shared, int l, int first) const {
    const int inputs = shape.layers[l].inputs, outputs = shape.layers[l].outputs, row = layout.rows[l];
    const float* weights = shared + layout.weights[l];
    const auto* grads = reinterpret_cast<const float4*>(shared + layout.grads[l]);
    auto* partials = reinterpret_cast<float4*>(shared + layout.partials);
    const int share = ceil_div(outputs, kParts), count = inputs * groups;
    for (int i = thread_index(); i < kParts * count; i += kStackThreads) {
      const int line = i / inputs, k = i - line * inputs, part = line / groups, group = line - part * groups;
      const int begin = part * share, end = begin + share < outputs ? begin + share : outputs;
      const float4* own = grads + group * outputs;
      float4 sum{};
      for (int n = begin; n < end; ++n) add_product(sum, weights[n * row + k], own[n]);
      partials[i] = sum;
    }
    __syncthreads();
    for (int i = thread_index(); i < count; i += kStackThreads) {
      const int group = i / inputs, k = i - group * inputs;
      float g[kQuad];
      add_parts(partials, count, i, g);
      if (l == 0) {
        write_input_gradient(first, group, k, g);
        continue;
      }
      const StackLayer& below = shape.layers[l - 1];
      float* own = shared + layout.grads[l - 1] + kQuad * i;
      const float* outputs_below = shared + layout.values[l] + kQuad * i;
      for (int s = 0; s < kQuad; ++s) {
        if (below.active)
          g[s] = gradient_of(below.activation, below.coefficient, g[s], own[s], outputs_below[s]);
        own[s] = g[s];
      }
      write(arrays.layers[l - 1].grad, inputs, first, group, k, g);
    }
    __syncthreads();
  }

  __device__ void write_input_gradient(int first, int group, int k, float (&g)[kQuad]) const {
    const int inputs = shape.layers[0].inputs;
    for (int s = 0; s < kQuad && arrays.add; ++s) {
      const int image = first + kQuad * group + s;
      if (image < images) g[s] += arrays.grad_in[static_cast<std::ptrdiff_t>(image) * inputs + k];
    }
    write(arrays.grad_in, inputs, first, group, k, g);
  }
};

std::size_t bytes_of(const LinearStackShape& shape, int tile) {
  return static_cast<std::size_t>(layout_of(shape, tile).floats) * sizeof(float);
}

}  // namespace

bool linear_stack_fits(const LinearStackShape& shape, std::size_t shared_bytes) {
  std::size_t weights = 0;  // first: huge layers would overflow the layout's ints
  for (int l = 0; l < shape.count; ++l)
    weights += static_cast<std::size_t>(shape.layers[l].inputs) *
               static_cast<std::size_t>(shape.layers[l].outputs) * sizeof(float);
  return weights <= shared_bytes && bytes_of(shape, kQuad) <= shared_bytes;
}

void linear_stack(Stream& stream, const LinearStackShape& shape, const LinearStackArrays& arrays,
                  const LinearStackPass& pass) {
  // The smallest tile that needs no block to take two, else the largest that there is room for.
  const std::size_t limit = shared_bytes_limit();
  int tile = kQuad;
  while (2 * tile <= kLargestTile && ceil_div(pass.images, tile) > kStackBlocks &&
         bytes_of(shape, 2 * tile) <= limit)
    tile *= 2;
  const int tiles = ceil_div(pass.images, tile), blocks = tiles < kStackBlocks ? tiles : kStackBlocks;
  const int classes = shape.layers[shape.count - 1].outputs;
  launch_body(stream,
              StackKernel{.shape = shape,
                          .arrays = arrays,
                          .layout = layout_of(shape, tile),
                          .loss = pass.loss == nullptr ? SampleLoss() : SampleLoss(*pass.loss, classes),
                          .images = pass.images,
                          .tile = tile,
                          .groups = tile / kQuad,
                          .input = pass.input,
                          .rows = pass.rows,
                          .normalisation = pass.normalisation,
                          .plane = pass.plane,
                          .backward = pass.backward,
                          .totals = pass.loss == nullptr ? nullptr : pass.totals},
              {static_cast<unsigned>(blocks)}, {{kStackThreads}, bytes_of(shape, tile)});
}

}  // namespace sweep::cuda
