// How the kernel of linear_stack.h divides its work, and where its arrays lie in shared memory.
#pragma once

#include "core/kernels/cuda/kernels/linear_stack.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

inline constexpr int kStackThreads = 512;
inline constexpr int kQuad = 4;  // floats of a float4, and samples per thread if there are many
// Slices of each sum: a layer of 10 outputs has too few sums for 512 threads, and a long sum is a chain of
// dependent adds.
inline constexpr int kSumSlices = 4;
inline constexpr int kMaxTile = 16;

/// A feature of each sample of a group. In memory those of four samples are read and written as a float4.
template <int kSamples>
struct alignas(kSamples * sizeof(float)) GroupValues {
  float of[kSamples];

  static __device__ GroupValues read(const GroupValues* from) {
    if constexpr (kSamples == kQuad) {
      const float4 four = *reinterpret_cast<const float4*>(from);
      return {four.x, four.y, four.z, four.w};
    } else {
      return *from;
    }
  }
  __device__ void write(GroupValues* to) const {
    if constexpr (kSamples == kQuad) {
      *reinterpret_cast<float4*>(to) = {of[0], of[1], of[2], of[3]};
    } else {
      *to = *this;
    }
  }

  /// Adds weight · values.
  __device__ void add_product(float weight, const GroupValues& values) {
    for (int s = 0; s < kSamples; ++s) of[s] += weight * values.of[s];
  }
};

inline int rounded_up(int count) { return ceil_div(count, kQuad) * kQuad; }

/// Where arrays start in shared memory, in floats. Arrays of samples are [groups][features][samples of a
/// group]: a thread reads and writes a group of four as one float4, and neighbouring threads neighbouring
/// features.
struct StackLayout {
  int weights[kMaxStackLayers];     // [outputs][rows[l]], then the biases [outputs]
  int rows[kMaxStackLayers];        // floats per output, with padding
  int values[kMaxStackLayers + 1];  // [0]: inputs of the stack; [l + 1]: outputs of layer l
  int grads[kMaxStackLayers];       // forward: outputs before the activation; backward: their gradients
  int partials;                     // [kSumSlices][features][tile], for the widest layer
  int samples;                      // [tile] each: largest outputs, sums of exponentials, labels
  int sums;                         // [tile] doubles: what sum_over_groups() adds up
  int floats;
};

inline StackLayout stack_layout_of(const LinearStackShape& shape, int tile) {
  StackLayout layout{};
  const auto reserve = [&layout](int floats) { return reserve_floats(layout.floats, floats); };
  layout.values[0] = reserve(tile * shape.layers[0].inputs);
  int widest = 0;
  for (int l = 0; l < shape.count; ++l) {
    const StackLayer& layer = shape.layers[l];
    // An odd number of quads per row: neighbouring threads read quads of neighbouring rows, which then lie in
    // different banks.
    const int row = rounded_up(layer.inputs);
    layout.rows[l] = row / kQuad % 2 == 0 ? row + kQuad : row;
    layout.weights[l] = reserve(layer.outputs * layout.rows[l] + layer.outputs);
    layout.values[l + 1] = reserve(tile * layer.outputs);
    layout.grads[l] = reserve(tile * layer.outputs);
    widest = layer.inputs > widest ? layer.inputs : widest;
    widest = layer.outputs > widest ? layer.outputs : widest;
  }
  layout.partials = reserve(kSumSlices * tile * widest);
  layout.samples = reserve(3 * tile);
  layout.sums = reserve(2 * tile);
  return layout;
}

/// Starts to copy a layer's weights and biases (zeros if there are none) to `to`, in rows of `row` floats. A
/// warp copies a row at a time: its lanes read neighbours. has_quads: rows begin at multiples of 16 bytes.
inline __device__ void load_stack_layer(const StackLayer& layer, const float* weight, const float* bias,
                                        bool has_quads, int row, float* to) {
  constexpr int kWarp = 32;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  SWEEP_ROLLED
  for (int n = thread / kWarp; n < layer.outputs; n += kStackThreads / kWarp) {
    const float* from = weight + n * layer.inputs;
    float* copy = to + n * row;
    if (has_quads) {
      SWEEP_ROLLED
      for (int k = kQuad * lane; k < layer.inputs; k += kQuad * kWarp)
        copy_async(reinterpret_cast<float4*>(copy + k), reinterpret_cast<const float4*>(from + k));
    } else {
      SWEEP_ROLLED
      for (int k = lane; k < layer.inputs; k += kWarp) copy_async(copy + k, from + k);
    }
  }
  float* biases = to + layer.outputs * row;
  SWEEP_ROLLED
  for (int n = thread; n < layer.outputs; n += kStackThreads) {
    if (bias == nullptr) {
      biases[n] = 0.0f;
    } else {
      copy_async(biases + n, bias + n);
    }
  }
}

inline std::size_t stack_bytes(const LinearStackShape& shape, int tile) {
  return static_cast<std::size_t>(stack_layout_of(shape, tile).floats) * sizeof(float);
}

}  // namespace sweep::cuda
