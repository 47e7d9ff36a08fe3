// What a block does with its samples in the kernel of linear_stack.h, and in others that do the same.
//
// A thread computes one output feature of a group of kSamples samples at once: each weight that it reads from
// shared memory is used for all of them. Sums are divided into kSumSlices slices, each for another thread,
// and joined in order. So the bits of a sum depend only on its length.
#pragma once

#include <bit>

#include "core/kernels/cuda/kernels/activation.h"
#include "core/kernels/cuda/kernels/linear_stack_layout.h"
#include "core/kernels/cuda/kernels/pixel_value.h"
#include "core/kernels/cuda/kernels/sample_loss.h"
#include "core/kernels/cuda/runtime/divisor.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// Passes tiles of samples through a stack: tile blockIdx.x, blockIdx.x + gridDim.x, … kSamples: samples of a
/// group, 4; or 1, with tiles of one sample.
template <int kSamples>
struct StackTiles {
  using Values = GroupValues<kSamples>;

  LinearStackShape shape;
  LinearStackArrays arrays;
  StackLayout layout;
  SampleLoss loss;
  int images, tile, groups, group_bits;  // tile: samples of a tile, in 2^group_bits groups
  const StepInput* input;
  const std::uint32_t* rows;
  Normalisation normalisation;
  int plane;  // pixels of a channel
  bool backward;
  Totals* totals;                            // nullptr: no loss
  bool has_quads[kMaxStackLayers] = {};      // whether rows of weights begin at multiples of 16 bytes
  Divisor by_features[kMaxStackLayers + 1];  // of layout.values

  /// A pass with tiles of `tile_` samples. It needs stack_bytes(shape, tile_) of shared memory.
  StackTiles(const LinearStackShape& of, const LinearStackArrays& all, const LinearStackPass& pass, int tile_)
      : shape(of),
        arrays(all),
        layout(stack_layout_of(of, tile_)),
        loss(pass.loss == nullptr ? SampleLoss() : SampleLoss{*pass.loss, of.layers[of.count - 1].outputs}),
        images(pass.images),
        tile(tile_),
        groups(tile_ / kSamples),
        group_bits(std::bit_width(static_cast<unsigned>(groups)) - 1),
        input(pass.input),
        rows(pass.rows),
        normalisation(pass.normalisation),
        plane(pass.plane),
        backward(pass.backward),
        totals(pass.loss == nullptr ? nullptr : pass.totals) {
    by_features[0] = Divisor(shape.layers[0].inputs);
    for (int l = 0; l < shape.count; ++l) {
      by_features[l + 1] = Divisor(shape.layers[l].outputs);
      const auto address = reinterpret_cast<std::uintptr_t>(arrays.layers[l].weight);
      has_quads[l] = address % sizeof(float4) == 0 && shape.layers[l].inputs % kQuad == 0;
    }
  }

  /// The block's tiles, once load_weights() has started to copy the weights to the same memory. has_inputs:
  /// the inputs of its only tile are in layout.values[0] already.
  __device__ void run(float* shared, bool has_inputs = false) const {
    // Thread s < tile adds up the losses of sample s of all of the block's tiles.
    SampleSums sums;
    for (int first = static_cast<int>(blockIdx.x) * tile; first < images;
         first += static_cast<int>(gridDim.x) * tile) {
      SampleTarget target;  // asked for now, so that it is there when the outputs are
      const bool has_sample = thread_index() < tile && first + thread_index() < images;
      if (totals != nullptr && has_sample)
        target = SampleTarget(*input, rows[first + thread_index()], loss.outputs);
      if (!has_inputs) load_inputs(shared, first);
      wait_for_copies();
      __syncthreads();
      for (int l = 0; l < shape.count; ++l) forward_layer(shared, l, first);
      if (totals != nullptr) add_losses(shared, has_sample, target, sums);
      if (!backward) continue;
      totals != nullptr ? write_loss_gradient(shared, first) : load_gradient(shared, first);
      for (int l = shape.count - 1; l >= 0; --l) {
        if (l > 0 || arrays.grad_in != nullptr) backward_layer(shared, l, first);
      }
    }
    if (totals != nullptr) add_totals(shared, sums);
  }

  /// Starts to copy the weights; run() waits.
  __device__ void load_weights(float* shared) const {
    for (int l = 0; l < shape.count; ++l)
      load_stack_layer(shape.layers[l], arrays.layers[l].weight, arrays.layers[l].bias, has_quads[l],
                       layout.rows[l], shared + layout.weights[l]);
  }

 private:
  static __device__ int thread_index() { return static_cast<int>(threadIdx.x); }

  // Each of the first kSamples threads adds what the tiles' samples at its place in their groups have lost to
  // a total of its own: the totals, and their bits, are the same for samples one by one as for groups of
  // four.
  __device__ void add_totals(float* shared, const SampleSums& sums) const {
    SampleSums place;
    place.loss = sum_over_groups(shared, sums.loss);
    place.correct = sum_over_groups(shared, sums.correct);
    if (input->numbers != nullptr) {
      place.absolute_error = sum_over_groups(shared, sums.absolute_error);
      place.squared_error = sum_over_groups(shared, sums.squared_error);
    } else if (loss.counts_top()) {
      place.in_top = sum_over_groups(shared, sums.in_top);
    }
    if (thread_index() >= kSamples) return;
    loss.add(place, blockIdx.x + threadIdx.x == 0 ? images : 0, input->numbers != nullptr,
             totals[static_cast<int>(blockIdx.x) * kSamples + thread_index()]);
  }

  // For thread s < kSamples, the sum over the groups' samples number s, in order. All threads call it.
  template <typename Number>
  __device__ Number sum_over_groups(float* shared, Number value) const {
    if (groups == 1) return value;
    auto* values = reinterpret_cast<Number*>(shared + layout.sums);
    __syncthreads();
    if (thread_index() < tile) values[thread_index()] = value;
    __syncthreads();
    Number sum = 0;
    SWEEP_ROLLED
    for (int s = thread_index(); s < tile && thread_index() < kSamples; s += kSamples) sum += values[s];
    return sum;
  }

  __device__ Values* values_at(float* shared, int offset) const {
    return reinterpret_cast<Values*>(shared + offset);
  }

  // Loads samples first … first + tile − 1, zeros after the end of the batch.
  __device__ void load_inputs(float* shared, int first) const {
    const int inputs = shape.layers[0].inputs;
    Values* values = values_at(shared, layout.values[0]);
    SWEEP_ROLLED
    for (int i = thread_index(); i < inputs * groups; i += kStackThreads) {
      const auto [group, k] = by_features[0].divide(i);
      Values value;
      for (int s = 0; s < kSamples; ++s) {
        const int image = first + kSamples * group + s;
        const std::ptrdiff_t index = static_cast<std::ptrdiff_t>(image) * inputs + k;
        if (image >= images) {
          value.of[s] = 0.0f;
        } else if (arrays.in != nullptr) {
          value.of[s] = arrays.in[index];
        } else {
          value.of[s] = BatchSample(*input, rows[image], inputs).value(k, plane, normalisation);
          if (arrays.pixels != nullptr) arrays.pixels[index] = value.of[s];
        }
      }
      value.write(values + i);
    }
  }

  // to[image][feature] = value, for the samples of the group that exist.
  __device__ void write(float* to, int features, int first, int group, int feature,
                        const Values& value) const {
    for (int s = 0; s < kSamples; ++s) {
      const int image = first + kSamples * group + s;
      if (image < images) to[static_cast<std::ptrdiff_t>(image) * features + feature] = value.of[s];
    }
  }

  // Joins the slices of sum `i` of `count`, in order.
  static __device__ Values join_slices(const Values* partials, int count, int i) {
    Values total = Values::read(partials + i);
    for (int slice = 1; slice < kSumSlices; ++slice)
      total.add_product(1.0f, Values::read(partials + slice * count + i));
    return total;
  }

  // Leaves kSumSlices slices of `count` sums over `length` values in layout.partials: a thread adds up some
  // slices, of `per_slice` values, by add(group, feature, begin, end). Ends with a barrier.
  template <class Add>
  __device__ void add_slices(float* shared, const Divisor& by_feature, int count, int length, int per_slice,
                             const Add& add) const {
    Values* partials = values_at(shared, layout.partials);
    SWEEP_ROLLED
    for (int i = thread_index(); i < kSumSlices * count; i += kStackThreads) {
      const auto [slice_and_group, feature] = by_feature.divide(i);
      const int slice = slice_and_group >> group_bits, group = slice_and_group & (groups - 1);
      const int begin = slice * per_slice, end = begin + per_slice < length ? begin + per_slice : length;
      add(group, feature, begin, end).write(partials + i);
    }
    __syncthreads();
  }

  // out = f(weight · in + bias) for the tile. Ends with a barrier, as does every step of the tile.
  __device__ void forward_layer(float* shared, int l, int first) const {
    const StackLayer& layer = shape.layers[l];
    const int inputs = layer.inputs, outputs = layer.outputs, row = layout.rows[l], count = outputs * groups;
    const float* weights = shared + layout.weights[l];
    const Values *in = values_at(shared, layout.values[l]), *partials = values_at(shared, layout.partials);
    const int per_slice = ceil_div(ceil_div(inputs, kQuad), kSumSlices) * kQuad;
    const auto add = [&](int group, int n, int begin, int end) {
      const float* weight_row = weights + n * row;
      const Values* values = in + group * inputs;
      Values sum{};
      int k = begin;
      for (; k + kQuad <= end; k += kQuad) {
        const float4 w = *reinterpret_cast<const float4*>(weight_row + k);
        if constexpr (kSamples == 1) {  // the array of a single sample, and k a multiple of four
          const float4 value = *reinterpret_cast<const float4*>(values + k);
          sum.add_product(w.x, {value.x});
          sum.add_product(w.y, {value.y});
          sum.add_product(w.z, {value.z});
          sum.add_product(w.w, {value.w});
        } else {
          sum.add_product(w.x, Values::read(values + k));
          sum.add_product(w.y, Values::read(values + k + 1));
          sum.add_product(w.z, Values::read(values + k + 2));
          sum.add_product(w.w, Values::read(values + k + 3));
        }
      }
      SWEEP_ROLLED
      for (; k < end; ++k) sum.add_product(weight_row[k], Values::read(values + k));
      return sum;
    };
    add_slices(shared, by_features[l + 1], count, inputs, per_slice, add);
    Values* out = values_at(shared, layout.values[l + 1]);
    Values* before = values_at(shared, layout.grads[l]);
    SWEEP_ROLLED
    for (int i = thread_index(); i < count; i += kStackThreads) {
      const auto [group, n] = by_features[l + 1].divide(i);
      const float bias = weights[outputs * row + n];
      Values value = join_slices(partials, count, i);
      for (float& x : value.of) x += bias;
      if (layer.active) {
        value.write(before + i);
        for (float& x : value.of) x = value_of(layer.activation, layer.coefficient, x);
      }
      value.write(out + i);
      if (arrays.layers[l].out != nullptr) write(arrays.layers[l].out, outputs, first, group, n, value);
    }
    __syncthreads();
  }

  // Where sample `sample` starts in the arrays of the last layer; its class c is kSamples · c further.
  __device__ int first_of(int sample) const {
    return sample / kSamples * loss.outputs * kSamples + sample % kSamples;
  }

  // Adds the tile's losses and counts to the thread's sums; `target`: of the thread's sample, if it has one.
  // The exponentials stay in layout.partials and their sums in layout.samples, for write_loss_gradient().
  __device__ void add_losses(float* shared, bool has_sample, const SampleTarget& target,
                             SampleSums& thread_sums) const {
    const int thread = thread_index(), classes = loss.outputs;
    const float* outputs = shared + layout.values[shape.count];
    float *exponentials = shared + layout.partials, *peaks = shared + layout.samples, *sums = peaks + tile;
    auto* labels = reinterpret_cast<int*>(sums + tile);
    if (thread < tile) {
      const Maximum maximum = largest(outputs + first_of(thread), classes, kSamples);
      peaks[thread] = maximum.value;
      if (has_sample) {
        labels[thread] = target.label;
        loss.count(outputs + first_of(thread), kSamples, maximum, target, thread_sums);
      }
    }
    __syncthreads();
    if (loss.is_cross_entropy()) {
      SWEEP_ROLLED
      for (int i = thread; i < classes * tile; i += kStackThreads) {
        const int sample = by_features[shape.count].divide(i / kSamples).quotient * kSamples + i % kSamples;
        exponentials[i] = expf(outputs[i] - peaks[sample]);
      }
      __syncthreads();
    }
    if (!has_sample) return;
    const int start = first_of(thread);
    float total = 0.0f, sum = 0.0f;
    SWEEP_ROLLED
    for (int c = 0; c < classes; ++c) {
      const float x = outputs[start + kSamples * c];
      if (loss.is_cross_entropy()) {
        total += exponentials[start + kSamples * c];
        sum += x - peaks[thread];
      } else {
        total += loss.value(x, loss.number(target, c));
      }
    }
    sums[thread] = total;
    thread_sums.loss += static_cast<double>(loss.is_cross_entropy()
                                                ? loss.cross_entropy(outputs + start, kSamples, peaks[thread],
                                                                     target.label, sum, logf(total))
                                                : total * loss.per_output()) *
                        input->loss_scale;
  }

  // The gradient before the activation of the last layer, to shared and to device memory. gradient(i, image,
  // c): of output i of the tile, output c of an image. Ends with a barrier.
  template <class Gradient>
  __device__ void write_gradient(float* shared, int first, const Gradient& gradient) const {
    const int last = shape.count - 1;
    const StackLayer& layer = shape.layers[last];
    const float* outputs = shared + layout.values[last + 1];
    float *grads = shared + layout.grads[last], *to = arrays.layers[last].grad;
    SWEEP_ROLLED
    for (int i = thread_index(); i < layer.outputs * tile; i += kStackThreads) {
      const auto [group, c] = by_features[last + 1].divide(i / kSamples);
      const int image = first + kSamples * group + i % kSamples;
      float g = 0.0f;
      if (image < images) {
        g = gradient(i, image, c);
        if (layer.active) g = gradient_of(layer.activation, layer.coefficient, g, grads[i], outputs[i]);
        to[static_cast<std::ptrdiff_t>(image) * layer.outputs + c] = g;
      }
      grads[i] = g;
    }
    __syncthreads();
  }

  // That of the mean loss.
  __device__ void write_loss_gradient(float* shared, int first) const {
    const float *outputs = shared + layout.values[shape.count], *exponentials = shared + layout.partials,
                *sums = shared + layout.samples + tile;
    const auto* labels = reinterpret_cast<const int*>(sums + tile);
    const float scale = input->gradient_scale;
    __syncthreads();  // the sums of add_losses()
    write_gradient(shared, first, [=, this](int i, int image, int c) {
      SampleTarget target;
      target.label = labels[image - first];
      if (input->numbers != nullptr) target = SampleTarget(*input, rows[image], loss.outputs);
      return loss.is_cross_entropy()
                 ? (exponentials[i] / sums[image - first] * loss.target_sum(target.label) -
                    loss.class_target(c, target.label)) *
                       scale
                 : loss.slope(outputs[i], loss.number(target, c)) * (loss.per_output() * scale);
    });
  }

  // That of the outputs, which other layers have left in arrays.grad_out.
  __device__ void load_gradient(float* shared, int first) const {
    write_gradient(shared, first, [this](int /*i*/, int image, int c) {
      return arrays.grad_out[static_cast<std::ptrdiff_t>(image) * shape.layers[shape.count - 1].outputs + c];
    });
  }

  // The gradient of layer l's input, taken back through the activation of the layer below; for l == 0 the
  // gradient of the stack's input.
  __device__ void backward_layer(float* shared, int l, int first) const {
    const int inputs = shape.layers[l].inputs, outputs = shape.layers[l].outputs, row = layout.rows[l];
    const float* weights = shared + layout.weights[l];
    const Values *grads = values_at(shared, layout.grads[l]), *partials = values_at(shared, layout.partials);
    const int per_slice = ceil_div(outputs, kSumSlices), count = inputs * groups;
    const auto add = [&](int group, int k, int begin, int end) {
      const Values* of_group = grads + group * outputs;
      Values sum{};
      for (int n = begin; n < end; ++n) sum.add_product(weights[n * row + k], Values::read(of_group + n));
      return sum;
    };
    add_slices(shared, by_features[l], count, outputs, per_slice, add);
    SWEEP_ROLLED
    for (int i = thread_index(); i < count; i += kStackThreads) {
      const auto [group, k] = by_features[l].divide(i);
      Values g = join_slices(partials, count, i);
      if (l == 0) {
        write_input_gradient(first, group, k, g);
        continue;
      }
      const StackLayer& below = shape.layers[l - 1];
      // In place of the outputs before the activation, which gradient_of() needs last here.
      Values* place = values_at(shared, layout.grads[l - 1]) + i;
      const Values before = Values::read(place),
                   after = Values::read(values_at(shared, layout.values[l]) + i);
      for (int s = 0; s < kSamples && below.active; ++s)
        g.of[s] = gradient_of(below.activation, below.coefficient, g.of[s], before.of[s], after.of[s]);
      g.write(place);
      write(arrays.layers[l - 1].grad, inputs, first, group, k, g);
    }
    __syncthreads();
  }

  __device__ void write_input_gradient(int first, int group, int k, Values g) const {
    const int inputs = shape.layers[0].inputs;
    for (int s = 0; s < kSamples && arrays.add; ++s) {
      const int image = first + kSamples * group + s;
      if (image < images) g.of[s] += arrays.grad_in[static_cast<std::ptrdiff_t>(image) * inputs + k];
    }
    write(arrays.grad_in, inputs, first, group, k, g);
  }
};

}  // namespace sweep::cuda
