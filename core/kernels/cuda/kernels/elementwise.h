// Activation functions, dropout and sums, element by element.
#pragma once

#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"
#include "core/network/activation.h"

namespace sweep::cuda {

/// out = f(in). `coefficient`: leaky_relu's slope.
void activation_forward(Stream& stream, Activation activation, float coefficient, int count, const float* in,
                        float* out);

/// grad_in = grad_out · f'(in), added to what is there if `add`, where out = f(in). grad_in may be grad_out.
void activation_backward(Stream& stream, Activation activation, float coefficient, int count,
                         const float* grad_out, const float* in, const float* out, bool add, float* grad_in);

/// torch.nn.Dropout with the random numbers of the CPU engine: which elements are zeroed depends on (seed,
/// number, step, image, element) alone.
struct DropoutRule {
  std::uint64_t seed;
  std::uint32_t number;           // tells the dropout layers of a network apart
  std::uint64_t threshold;        // a random 32-bit number below it drops the element
  float kept;                     // factor of the others
  std::uint32_t first_image = 0;  // the place in its batch of the first image of the pass
};

/// out = in · factor, as the rule has it for the step in `input`; arrays are [images][elements]. The gradient
/// goes back the same way. Added to what is there if `add`.
void dropout(Stream& stream, const DropoutRule& rule, const StepInput* input, int images, int elements,
             const float* in, bool add, float* out);

/// out = a + b.
void add(Stream& stream, int count, const float* a, const float* b, float* out);

/// values [images][channels][plane] += bias [channels], then their positive parts if `relu`. bias may be
/// nullptr.
void bias_relu(Stream& stream, int images, int channels, int plane, const float* bias, bool relu,
               float* values);

/// to = from, or to += from if `add`.
void copy_or_add(Stream& stream, int count, const float* from, bool add, float* to);

}  // namespace sweep::cuda
