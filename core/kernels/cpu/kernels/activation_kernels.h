// Activation functions and sums, element by element. Thread-safe: pure functions of their arguments.
#pragma once

#include <cstddef>

#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/simd/kernel.h"
#include "core/network/activation.h"

namespace sweep::cpu {

/// out = f(in), over `floats` values, a multiple of kLanes. `coefficient`: leaky_relu's slope.
extern const Kernel<void(Activation activation, float coefficient, const float* in, std::size_t floats,
                         float* out)>
    activation_forward;

/// grad_in = grad_out · f'(in), where out = f(in). grad_in may be grad_out.
extern const Kernel<void(Activation activation, float coefficient, const float* grad_out, const float* in,
                         const float* out, std::size_t floats, float* grad_in)>
    activation_backward;

/// out = a + b, then max(0, ·) if `relu`, over `floats` values, a multiple of kLanes. out may be a or b.
extern const Kernel<void(const float* a, const float* b, std::size_t floats, bool relu, float* out)>
    sum_values;

}  // namespace sweep::cpu
