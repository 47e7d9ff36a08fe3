// How one parameter changes in a step, for the kernels that do it.
#pragma once

#include "core/kernels/cuda/kernels/optimizer.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

/// A parameter and its state, in the order of state_names(), in registers.
struct ParameterValues {
  float weight = 0;
  float state[kMaxOptimizerStates] = {};

  ParameterValues() = default;
  __device__ ParameterValues(const OptimizerArrays& arrays, int i) : weight(arrays.parameters[i]) {
    for (std::size_t s = 0; s < kMaxOptimizerStates; ++s) {
      if (arrays.state[s] != nullptr) state[s] = arrays.state[s][i];
    }
  }
  __device__ void store(const OptimizerArrays& arrays, int i) const {
    arrays.parameters[i] = weight;
    for (std::size_t s = 0; s < kMaxOptimizerStates; ++s) {
      if (arrays.state[s] != nullptr) arrays.state[s][i] = state[s];
    }
  }
};

/// What kernels have to know of the options, as floats; the formulas of core/network/optimizer.h.
struct OptimizerRule {
  enum class Kind { kSgd, kAdam, kRmsprop } kind = Kind::kSgd;
  float decay = 0;             // of the weights, added to the gradient
  float keep2 = 0, take2 = 0;  // of the squares: beta2 or alpha, and what is left to 1
  float eps = 0;
  bool momentum = false, nesterov = false, centered = false;  // of sgd and rmsprop

  /// The step of one parameter with the gradient `g`.
  __device__ void update(const StepFactors& factors, float g, ParameterValues& values) const {
    const float weight = values.weight * factors.shrink;
    g += decay * weight;
    switch (kind) {
      case Kind::kSgd:
        g = sgd_update(factors, g, values.state);
        break;
      case Kind::kAdam:
        g = adam_update(factors, g, values.state);
        break;
      case Kind::kRmsprop:
        g = rmsprop_update(factors, g, values.state);
        break;
    }
    values.weight = weight + factors.rate * g;
  }

 private:
  // What the learning rate multiplies; these change the state.
  __device__ float sgd_update(const StepFactors& factors, float g,
                              float (&state)[kMaxOptimizerStates]) const {
    if (!momentum) return g;
    state[0] = factors.first != 0 ? g : factors.keep * state[0] + factors.take * g;
    return nesterov ? g + factors.keep * state[0] : state[0];
  }

  __device__ float adam_update(const StepFactors& factors, float g,
                               float (&state)[kMaxOptimizerStates]) const {
    state[0] += factors.take * (g - state[0]);
    state[1] = keep2 * state[1] + take2 * g * g;
    return state[0] / (sqrtf(state[1]) * factors.scale + eps);
  }

  __device__ float rmsprop_update(const StepFactors& factors, float g,
                                  float (&state)[kMaxOptimizerStates]) const {
    state[0] = keep2 * state[0] + take2 * g * g;
    float variance = state[0];
    if (centered) {
      state[1] += take2 * (g - state[1]);
      variance -= state[1] * state[1];
      if (variance < 0.0f) variance = 0.0f;  // rounded so
    }
    g = g / (sqrtf(variance) + eps);
    if (!momentum) return g;
    // Constant indices, or the array would be in local memory to be indexed there.
    if (centered) return state[2] = factors.keep * state[2] + g;
    return state[1] = factors.keep * state[1] + g;
  }
};

}  // namespace sweep::cuda
