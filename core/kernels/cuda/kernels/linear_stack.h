// The fully connected layers at the end of a network, with activations and loss, forward and backward, fused
// into one kernel: a block keeps all their weights in shared memory and passes a few samples at a time
// through them. For small networks a kernel per layer would spend most of its time on being launched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/cuda/kernels/elementwise.h"
#include "core/kernels/cuda/kernels/loss.h"
#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

inline constexpr int kMaxStackLayers = 6;

/// One layer: out = f(in · weightᵀ + bias).
struct StackLayer {
  int inputs = 0, outputs = 0;
  bool active = false;  // whether there is an activation f
  Activation activation = Activation::kRelu;
  float coefficient = 0;  // leaky_relu's slope
};

struct LinearStackShape {
  int count = 0;
  StackLayer layers[kMaxStackLayers];
};

/// Whether the kernel can do `shape` with `shared_bytes` of shared memory per block.
bool linear_stack_fits(const LinearStackShape& shape, std::size_t shared_bytes);

/// Device arrays. Activations and gradients are [images][features].
struct LinearStackArrays {
  struct Layer {
    const float *weight = nullptr, *bias = nullptr;  // [outputs][inputs]; [outputs] or nullptr
    float* out = nullptr;                            // gets f(…), unless nullptr
    float* grad = nullptr;                           // gets the gradient before the activation
  };
  Layer layers[kMaxStackLayers];
  const float* in = nullptr;        // input of the first layer; nullptr: the pixels of the batch
  float* pixels = nullptr;          // gets the pixels as floats, unless nullptr
  const float* grad_out = nullptr;  // gradient of the last layer's f(…); nullptr: the loss comes from there
  float* grad_in = nullptr;         // gets the gradient of the input, unless nullptr
  bool add = false;                 // add to what grad_in holds
};

/// The batch, and how far to go with it.
struct LinearStackPass {
  int images = 0;
  const StepInput* input = nullptr;
  const std::uint32_t* rows = nullptr;  // [images]
  Normalisation normalisation = {};
  int plane = 1;                         // pixels of a channel
  const LossParameters* loss = nullptr;  // nullptr: none
  bool backward = false;                 // also the gradients; needs a loss, or grad_out
  Totals* totals = nullptr;              // [kStackTotals]: each block adds to its own
};

void linear_stack(Stream& stream, const LinearStackShape& shape, const LinearStackArrays& arrays,
                  const LinearStackPass& pass);

}  // namespace sweep::cuda
