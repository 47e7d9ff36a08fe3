// The fully connected layers at the end of a network, with their activations and the loss, forward and
// backward, in one kernel: a block has all their weights in its shared memory, and passes some samples at a
// time through them. What a small network spends in kernels of its own for each layer is mostly the time to
// start them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/kernels/elementwise.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

inline constexpr int kMostStackLayers = 6;

/// out = f(in · weightᵀ + bias).
struct StackLayer {
  int inputs = 0, outputs = 0;
  bool active = false;  // whether there is an f
  Activation activation = Activation::kRelu;
  float coefficient = 0;  // activation_coefficient()
};

struct LinearStackShape {
  int count = 0;
  StackLayer layers[kMostStackLayers];
};

/// Whether the kernel can do it with `shared_bytes` of shared memory per block.
bool linear_stack_fits(const LinearStackShape& shape, std::size_t shared_bytes);

/// The device's arrays. Features are neighbours in memory: [images][features].
struct LinearStackArrays {
  struct OfLayer {
    const float *weight = nullptr, *bias = nullptr;  // bias [outputs] or nullptr
    float* out = nullptr;                            // gets the outputs, or nullptr
    float* grad = nullptr;                           // gets the gradient before the activation, or nullptr
  };
  OfLayer layers[kMostStackLayers];
  const float* in = nullptr;  // of the first layer; nullptr: the pixels of the batch
  float* pixels = nullptr;    // gets the pixels as floats, or nullptr
  float* grad_in = nullptr;   // gets the gradient of the input, or nullptr
  bool add = false;           // whether to add to grad_in what it gets
};

/// The batch, and what to do with it.
struct LinearStackPass {
  int images = 0;
  const StepInput* input = nullptr;
  const std::uint32_t* rows = nullptr;
  Normalisation normalisation = {};
  int plane = 1;                      // pixels of a channel
  const LossOptions* loss = nullptr;  // nullptr: only the outputs are wanted
  bool backward = false;
  DeviceTotals* totals = nullptr;  // [kStackBlocks], each block adds to its own
};

/// Most blocks of the kernel: as many as a large GPU has multiprocessors. They take tiles of samples in
/// turns.
inline constexpr int kStackBlocks = 132;

void linear_stack(Stream& stream, const LinearStackShape& shape, const LinearStackArrays& arrays,
                  const LinearStackPass& pass);

}  // namespace sweep::cuda
