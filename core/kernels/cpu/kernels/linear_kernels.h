// Fully connected layers on one block of 16 images. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"

namespace sweep::cpu {

/// Weights are stored in panels of kLanes outputs, [panel][in][kLanes], the last one padded with zeros. One
/// layout serves all three products: forward and the input's gradient broadcast single weights from it, and
/// the gradient of the weights has vectors along the outputs. linear_panels() is the number of panels.
inline std::size_t linear_panels(std::size_t out_features) { return (out_features + kLanes - 1) / kLanes; }

/// Where the first weight of output `out` is in them; the others follow kLanes apart.
constexpr std::size_t linear_weight_place(std::size_t in_features, std::size_t out) {
  return out / kLanes * in_features * kLanes + out % kLanes;
}

/// y = W·x + bias, then max(0, ·) if `relu`. x [in][16], y [out][16], bias [out] or nullptr.
extern const Kernel<void(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                         const float* x, float* y)>
    linear_forward;

/// grad_x [in][16] = Wᵀ·grad_y.
extern const Kernel<void(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                         float* grad_x)>
    linear_backward_input;

/// Adds Σ grad_y · xᵀ over the images to grad_panels, in the layout of panels, and Σ grad_y to
/// grad_bias, [out] or nullptr.
extern const Kernel<void(std::size_t in, std::size_t out, const float* x, const float* grad_y,
                         float* grad_panels, float* grad_bias)>
    linear_backward_weights;

}  // namespace sweep::cpu
