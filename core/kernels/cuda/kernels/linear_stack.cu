// Grid: up to kStackBlocks blocks of 512 threads. A block loads the weights of all layers to dynamic shared
// memory once, and then takes tiles of samples in turns: tile blockIdx.x, blockIdx.x + gridDim.x, … It passes
// a tile forward through all layers, computes its losses and their gradient, and passes the gradient back.
// Where other layers follow, on another device, the gradient comes from them, and the outputs are computed
// once more.
// The weight gradients are a kernel of their own (linear_backward_weights), because they are sums over
// samples of all blocks.
//
// A thread computes one output feature of four samples (a quad) at once: each weight that it reads from
// shared memory is used four times, and the samples are read as float4. Sums are divided into kSumParts
// parts, each for another thread, and joined in order. Both numbers are constants, so the bits of a sum
// depend only on its length.
#include "core/kernels/cuda/kernels/linear_stack.h"

#include "core/kernels/cuda/kernels/activation.h"
#include "core/kernels/cuda/kernels/linear_stack_layout.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/kernels/sample_loss.h"
#include "core/kernels/cuda/kernels/sum_order.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

// sum += weight · values, for four samples.
__device__ void add_product(float4& sum, float weight, const float4& values) {
  sum.x += weight * values.x;
  sum.y += weight * values.y;
  sum.z += weight * values.z;
  sum.w += weight * values.w;
}

__device__ int thread_index() { return static_cast<int>(threadIdx.x); }

struct StackKernel {
  static constexpr unsigned kMaxThreads = kStackThreads;

  LinearStackShape shape;
  LinearStackArrays arrays;
  StackLayout layout;
  SampleLoss loss;
  int images, tile, groups;  // tile: samples of a tile; groups: its quads
  const StepInput* input;
  const std::uint32_t* rows;
  Normalisation normalisation;
  int plane;  // pixels of a channel
  bool backward;
  DeviceTotals* totals;  // nullptr: no loss
  bool loads_weights_early;
  bool has_quads[kMaxStackLayers] = {};  // whether rows of weights begin at multiples of 16 bytes

  __device__ void load_early() const {
    if (loads_weights_early) load_weights(dynamic_shared<float>());
  }

  __device__ void operator()() const {
    auto* shared = dynamic_shared<float>();
    if (!loads_weights_early) load_weights(shared);
    // Thread s < tile adds up the losses of sample s of all of the block's tiles.
    SampleSums sums;
    for (int first = static_cast<int>(blockIdx.x) * tile; first < images;
         first += static_cast<int>(gridDim.x) * tile) {
      load_inputs(shared, first);
      wait_for_copies();
      __syncthreads();
      for (int l = 0; l < shape.count; ++l) forward_layer(shared, l, first);
      if (totals != nullptr) add_losses(shared, first, sums);
      if (!backward) continue;
      if (totals != nullptr) {
        write_loss_gradient(shared, first);
      } else {
        load_gradient(shared, first);
      }
      for (int l = shape.count - 1; l >= 0; --l) {
        if (l > 0 || arrays.grad_in != nullptr) backward_layer(shared, l, first);
      }
    }
    if (totals == nullptr) return;
    add_totals(shared, sums);
  }

  __device__ void add_totals(float* shared, const SampleSums& sums) const {
    SampleSums block;
    block.loss = sum_over_tile(shared, sums.loss);
    block.correct = sum_over_tile(shared, sums.correct);
    const bool are_numbers = input->numbers != nullptr;
    if (are_numbers) {
      block.absolute_error = sum_over_tile(shared, sums.absolute_error);
      block.squared_error = sum_over_tile(shared, sums.squared_error);
    } else if (loss.counts_top()) {
      block.in_top = sum_over_tile(shared, sums.in_top);
    }
    if (thread_index() == 0) loss.add(block, blockIdx.x == 0 ? images : 0, are_numbers, totals[blockIdx.x]);
  }

  // The sum over the threads s < tile, in order, for thread 0. All threads call it.
  template <typename Number>
  __device__ Number sum_over_tile(float* shared, Number value) const {
    auto* values = reinterpret_cast<Number*>(shared + layout.sums);
    __syncthreads();
    if (thread_index() < tile) values[thread_index()] = value;
    __syncthreads();
    Number sum = 0;
    for (int s = 0; s < tile && thread_index() == 0; ++s) sum += values[s];
    return sum;
  }

  // Asynchronous copies; the barrier after load_inputs() covers them. A warp copies a row at a time: its
  // lanes read neighbours.
  __device__ void load_weights(float* shared) const {
    constexpr int kWarp = 32;
    const int warp = thread_index() / kWarp, lane = thread_index() % kWarp;
    for (int l = 0; l < shape.count; ++l) {
      const StackLayer& layer = shape.layers[l];
      float* to = shared + layout.weights[l];
      for (int n = warp; n < layer.outputs; n += kStackThreads / kWarp) {
        const float* from = arrays.layers[l].weight + n * layer.inputs;
        float* row = to + n * layout.rows[l];
        if (has_quads[l]) {
          for (int k = kQuad * lane; k < layer.inputs; k += kQuad * kWarp)
            copy_async(reinterpret_cast<float4*>(row + k), reinterpret_cast<const float4*>(from + k));
        } else {
          for (int k = lane; k < layer.inputs; k += kWarp) copy_async(row + k, from + k);
        }
      }
      float* biases = to + layer.outputs * layout.rows[l];
      const float* bias = arrays.layers[l].bias;
      for (int n = thread_index(); n < layer.outputs; n += kStackThreads) {
        if (bias == nullptr) {
          biases[n] = 0.0f;
        } else {
          copy_async(biases + n, bias + n);
        }
      }
    }
  }

  // Loads samples first … first + tile − 1, zeros behind the end of the batch.
  __device__ void load_inputs(float* shared, int first) const {
    const int inputs = shape.layers[0].inputs;
    auto* values = reinterpret_cast<float4*>(shared + layout.values[0]);
    for (int i = thread_index(); i < inputs * groups; i += kStackThreads) {
      const int group = i / inputs, k = i - group * inputs;
      float value[kQuad];
      for (int s = 0; s < kQuad; ++s) {
        const int image = first + kQuad * group + s;
        const std::ptrdiff_t index = static_cast<std::ptrdiff_t>(image) * inputs + k;
        if (image >= images) {
          value[s] = 0.0f;
        } else if (arrays.in != nullptr) {
          value[s] = arrays.in[index];
        } else {
          value[s] = BatchSample(*input, rows[image], inputs).value(k, plane, normalisation);
          if (arrays.pixels != nullptr) arrays.pixels[index] = value[s];
        }
      }
      values[i] = {value[0], value[1], value[2], value[3]};
    }
  }

  // to[image][feature] = value, for the samples of the quad that exist.
  __device__ void write(float* to, int features, int first, int group, int feature,
                        const float (&value)[kQuad]) const {
    for (int s = 0; s < kQuad; ++s) {
      const int image = first + kQuad * group + s;
      if (image < images) to[static_cast<std::ptrdiff_t>(image) * features + feature] = value[s];
    }
  }

  // Joins the parts of sum `i` of `count`, in order.
  static __device__ void join_parts(const float4* partials, int count, int i, float (&sum)[kQuad]) {
    float4 total = partials[i];
    for (int part = 1; part < kSumParts; ++part) add_product(total, 1.0f, partials[part * count + i]);
    sum[0] = total.x;
    sum[1] = total.y;
    sum[2] = total.z;
    sum[3] = total.w;
  }

  // out = f(weight · in + bias) for the tile. Ends with a barrier, as does every step of the tile.
  __device__ void forward_layer(float* shared, int l, int first) const {
    const StackLayer& layer = shape.layers[l];
    const int inputs = layer.inputs, outputs = layer.outputs, row = layout.rows[l];
    const float* weights = shared + layout.weights[l];
    const auto* in = reinterpret_cast<const float4*>(shared + layout.values[l]);
    auto* partials = reinterpret_cast<float4*>(shared + layout.partials);
    const int per_part = ceil_div(ceil_div(inputs, kQuad), kSumParts) * kQuad, count = outputs * groups;
    for (int i = thread_index(); i < kSumParts * count; i += kStackThreads) {
      const int part_and_group = i / outputs, n = i - part_and_group * outputs,
                part = part_and_group / groups, group = part_and_group - part * groups;
      const int begin = part * per_part, end = begin + per_part < inputs ? begin + per_part : inputs;
      const float* weight_row = weights + n * row;
      const float4* values = in + group * inputs;
      float4 sum{};
      int k = begin;
      for (; k + kQuad <= end; k += kQuad) {
        const float4 w = *reinterpret_cast<const float4*>(weight_row + k);
        add_product(sum, w.x, values[k]);
        add_product(sum, w.y, values[k + 1]);
        add_product(sum, w.z, values[k + 2]);
        add_product(sum, w.w, values[k + 3]);
      }
      for (; k < end; ++k) add_product(sum, weight_row[k], values[k]);
      partials[i] = sum;
    }
    __syncthreads();
    auto* out = reinterpret_cast<float4*>(shared + layout.values[l + 1]);
    auto* before = reinterpret_cast<float4*>(shared + layout.grads[l]);
    for (int i = thread_index(); i < count; i += kStackThreads) {
      const int group = i / outputs, n = i - group * outputs;
      const float bias = weights[outputs * row + n];
      float value[kQuad];
      join_parts(partials, count, i, value);
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

  // Where sample `sample` starts in the arrays of the last layer; its class c is kQuad · c further.
  __device__ int first_of(int sample) const { return sample / kQuad * loss.outputs * kQuad + sample % kQuad; }

  // Adds the tile's losses and counts to the thread's sums. The exponentials stay in layout.partials and
  // their sums in layout.samples, for write_loss_gradient().
  __device__ void add_losses(float* shared, int first, SampleSums& thread_sums) const {
    const int thread = thread_index(), classes = loss.outputs;
    const float* outputs = shared + layout.values[shape.count];
    float *exponentials = shared + layout.partials, *peaks = shared + layout.samples, *sums = peaks + tile;
    auto* labels = reinterpret_cast<int*>(sums + tile);
    const bool has_sample = thread < tile && first + thread < images;
    SampleTarget target;
    if (thread < tile) {
      const Maximum maximum = largest(outputs + first_of(thread), classes, kQuad);
      peaks[thread] = maximum.value;
      if (has_sample) {
        target = SampleTarget(*input, rows[first + thread], loss.outputs);
        labels[thread] = target.label;
        loss.count(outputs + first_of(thread), kQuad, maximum, target, thread_sums);
      }
    }
    __syncthreads();
    if (loss.is_cross_entropy()) {
      for (int i = thread; i < classes * tile; i += kStackThreads) {
        const int sample = i / (kQuad * classes) * kQuad + i % kQuad;
        exponentials[i] = expf(outputs[i] - peaks[sample]);
      }
      __syncthreads();
    }
    if (!has_sample) return;
    const int start = first_of(thread);
    float total = 0.0f, sum = 0.0f;
    for (int c = 0; c < classes; ++c) {
      const float x = outputs[start + kQuad * c];
      if (loss.is_cross_entropy()) {
        total += exponentials[start + kQuad * c];
        sum += x - peaks[thread];
      } else {
        total += loss.value(x, loss.number(target, c));
      }
    }
    sums[thread] = total;
    thread_sums.loss += static_cast<double>(loss.is_cross_entropy()
                                                ? loss.cross_entropy(outputs + start, kQuad, peaks[thread],
                                                                     target.label, sum, logf(total))
                                                : total * loss.per_output()) *
                        input->loss_scale;
  }

  // The gradient of the mean loss, before the activation of the last layer, to shared and to device memory.
  __device__ void write_loss_gradient(float* shared, int first) const {
    const int classes = loss.outputs;
    const StackLayer& layer = shape.layers[shape.count - 1];
    const float *outputs = shared + layout.values[shape.count], *exponentials = shared + layout.partials,
                *sums = shared + layout.samples + tile;
    const auto* labels = reinterpret_cast<const int*>(sums + tile);
    float *grads = shared + layout.grads[shape.count - 1], *to = arrays.layers[shape.count - 1].grad;
    const float scale = input->gradient_scale;
    __syncthreads();  // the sums of add_losses()
    for (int i = thread_index(); i < classes * tile; i += kStackThreads) {
      const int quad = i / kQuad, group = quad / classes, c = quad - group * classes;
      const int sample = kQuad * group + i % kQuad;
      if (first + sample >= images) {
        grads[i] = 0.0f;
        continue;
      }
      SampleTarget target;
      target.label = labels[sample];
      if (input->numbers != nullptr) target = SampleTarget(*input, rows[first + sample], classes);
      float g = loss.is_cross_entropy()
                    ? (exponentials[i] / sums[sample] * loss.target_sum(target.label) -
                       loss.class_target(c, target.label)) *
                          scale
                    : loss.slope(outputs[i], loss.number(target, c)) * (loss.per_output() * scale);
      if (layer.active) g = gradient_of(layer.activation, layer.coefficient, g, grads[i], outputs[i]);
      grads[i] = g;
      to[static_cast<std::ptrdiff_t>(first + sample) * classes + c] = g;
    }
    __syncthreads();
  }

  // The same gradient where other layers have left that of the outputs in arrays.grad_out.
  __device__ void load_gradient(float* shared, int first) const {
    const StackLayer& layer = shape.layers[shape.count - 1];
    const float* outputs = shared + layout.values[shape.count];
    float *grads = shared + layout.grads[shape.count - 1], *to = arrays.layers[shape.count - 1].grad;
    for (int i = thread_index(); i < layer.outputs * tile; i += kStackThreads) {
      const int quad = i / kQuad, group = quad / layer.outputs, n = quad - group * layer.outputs;
      const int image = first + kQuad * group + i % kQuad;
      float g = 0.0f;
      if (image < images) {
        const std::ptrdiff_t index = static_cast<std::ptrdiff_t>(image) * layer.outputs + n;
        g = arrays.grad_out[index];
        if (layer.active) g = gradient_of(layer.activation, layer.coefficient, g, grads[i], outputs[i]);
        to[index] = g;
      }
      grads[i] = g;
    }
    __syncthreads();
  }

  // The gradient of layer l's input, taken back through the activation of the layer below; for l == 0 the
  // gradient of the stack's input.
  __device__ void backward_layer(float* shared, int l, int first) const {
    const int inputs = shape.layers[l].inputs, outputs = shape.layers[l].outputs, row = layout.rows[l];
    const float* weights = shared + layout.weights[l];
    const auto* grads = reinterpret_cast<const float4*>(shared + layout.grads[l]);
    auto* partials = reinterpret_cast<float4*>(shared + layout.partials);
    const int per_part = ceil_div(outputs, kSumParts), count = inputs * groups;
    for (int i = thread_index(); i < kSumParts * count; i += kStackThreads) {
      const int part_and_group = i / inputs, k = i - part_and_group * inputs, part = part_and_group / groups,
                group = part_and_group - part * groups;
      const int begin = part * per_part, end = begin + per_part < outputs ? begin + per_part : outputs;
      const float4* quads = grads + group * outputs;
      float4 sum{};
      for (int n = begin; n < end; ++n) add_product(sum, weights[n * row + k], quads[n]);
      partials[i] = sum;
    }
    __syncthreads();
    for (int i = thread_index(); i < count; i += kStackThreads) {
      const int group = i / inputs, k = i - group * inputs;
      float g[kQuad];
      join_parts(partials, count, i, g);
      if (l == 0) {
        write_input_gradient(first, group, k, g);
        continue;
      }
      const StackLayer& below = shape.layers[l - 1];
      // In place of the outputs before the activation, which gradient_of() needs last here.
      float* quad = shared + layout.grads[l - 1] + kQuad * i;
      const float* outputs_below = shared + layout.values[l] + kQuad * i;
      for (int s = 0; s < kQuad; ++s) {
        if (below.active)
          g[s] = gradient_of(below.activation, below.coefficient, g[s], quad[s], outputs_below[s]);
        quad[s] = g[s];
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

std::size_t stack_bytes(const LinearStackShape& shape, int tile) {
  return static_cast<std::size_t>(stack_layout_of(shape, tile).floats) * sizeof(float);
}

}  // namespace

bool linear_stack_fits(const LinearStackShape& shape, std::size_t shared_bytes) {
  std::size_t weights = 0;  // checked first: huge layers would overflow the ints of the layout
  for (int l = 0; l < shape.count; ++l)
    weights += static_cast<std::size_t>(shape.layers[l].inputs) *
               static_cast<std::size_t>(shape.layers[l].outputs) * sizeof(float);
  return weights <= shared_bytes && stack_bytes(shape, kQuad) <= shared_bytes;
}

void linear_stack(Stream& stream, const LinearStackShape& shape, const LinearStackArrays& arrays,
                  const LinearStackPass& pass) {
  // The smallest tile with which no block has to take two; if there is none, the largest that fits.
  const std::size_t limit = shared_bytes_limit();
  int tile = kQuad;
  while (2 * tile <= kMaxTile && ceil_div(pass.images, tile) > kStackBlocks &&
         stack_bytes(shape, 2 * tile) <= limit)
    tile *= 2;
  const int tiles = ceil_div(pass.images, tile), blocks = tiles < kStackBlocks ? tiles : kStackBlocks;
  const int classes = shape.layers[shape.count - 1].outputs;
  StackKernel kernel{.shape = shape,
                     .arrays = arrays,
                     .layout = stack_layout_of(shape, tile),
                     .loss = pass.loss == nullptr ? SampleLoss() : SampleLoss{*pass.loss, classes},
                     .images = pass.images,
                     .tile = tile,
                     .groups = tile / kQuad,
                     .input = pass.input,
                     .rows = pass.rows,
                     .normalisation = pass.normalisation,
                     .plane = pass.plane,
                     .backward = pass.backward,
                     .totals = pass.loss == nullptr ? nullptr : pass.totals,
                     .loads_weights_early = stream.may_load_early(Changes::kParameters)};
  for (int l = 0; l < shape.count; ++l) {
    const auto address = reinterpret_cast<std::uintptr_t>(arrays.layers[l].weight);
    kernel.has_quads[l] = address % sizeof(float4) == 0 && shape.layers[l].inputs % kQuad == 0;
  }
  launch_functor(stream, kernel, {static_cast<unsigned>(blocks)},
                 {{kStackThreads}, stack_bytes(shape, tile)});
}

}  // namespace sweep::cuda
