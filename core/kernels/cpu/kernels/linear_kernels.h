// Fully connected layers on one block of 16 images. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// Weights are kept in panels of kLanes outputs, [panel][in][kLanes], the last panel filled up with zeros.
/// One layout serves all three products: outputs and inputs are broadcast from it, and the gradient's vectors
/// lie along the outputs.
inline std::size_t linear_panels(std::size_t out_features) { return (out_features + kLanes - 1) / kLanes; }

/// PyTorch's [out][in] to panels and back.
void pack_linear_weights(const float* weights, std::size_t in, std::size_t out, float* panels);
void unpack_linear_weights(const float* panels, std::size_t in, std::size_t out, float* weights);

/// Panels as pairs of inputs, linear_panels(out) · pair_count(in) · kLanes floats, and as pairs of outputs,
/// linear_panels(pair_count(out)) · in · kLanes floats: see bf16_kernels.h.
void pack_linear_input_pairs(const float* panels, std::size_t in, std::size_t out, float* pairs);
void pack_linear_output_pairs(const float* panels, std::size_t in, std::size_t out, float* pairs);

/// y = W·x + bias, then max(0, ·) if `relu`. x [in][16], y [out][16], bias [out] or nullptr.
void linear_forward(const float* panels, const float* bias, std::size_t in, std::size_t out, bool relu,
                    const float* x, float* y);

/// grad_x [in][16] = Wᵀ·grad_y.
void linear_backward_input(const float* panels, std::size_t in, std::size_t out, const float* grad_y,
                           float* grad_x);

/// Adds Σ over images of grad_y ⊗ x to grad_panels, and of grad_y to grad_bias [out] (or nullptr).
void linear_backward_weights(std::size_t in, std::size_t out, const float* x, const float* grad_y,
                             float* grad_panels, float* grad_bias);

}  // namespace sweep::cpu
