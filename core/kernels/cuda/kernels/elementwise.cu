#include "core/kernels/cuda/kernels/elementwise.h"

#include "core/base/random.h"
#include "core/kernels/cuda/kernels/activation.h"
#include "core/kernels/cuda/runtime/divisor.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {
namespace {

__global__ void forward_kernel(Activation activation, float coefficient, int count, const float* in,
                               float* out) {
  for_each_index(count, [=](int i) { out[i] = value_of(activation, coefficient, in[i]); });
}

__global__ void backward_kernel(Activation activation, float coefficient, int count, const float* grad_out,
                                const float* in, const float* out, bool add, float* grad_in) {
  for_each_index(count, [=](int i) {
    const float g = gradient_of(activation, coefficient, grad_out[i], in[i], out[i]);
    grad_in[i] = add ? grad_in[i] + g : g;
  });
}

// One thread per four elements of an image, which share one call of the generator.
__global__ void dropout_kernel(DropoutRule rule, const StepInput* input, int images, int elements,
                               const float* in, bool add, float* out) {
  const int quads = ceil_div(elements, 4);
  const std::uint32_t use = static_cast<std::uint32_t>(RandomUse::kDropout) << 24 | rule.number;
  const std::uint32_t step = input->step;
  for_each_index(images * quads, [=](int i) {
    const int image = i / quads, quad = i % quads;
    const auto random = philox4x32(
        {static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(image) + rule.first_image, step, use},
        {static_cast<std::uint32_t>(rule.seed), static_cast<std::uint32_t>(rule.seed >> 32)});
    for (int e = 0; e < 4 && quad * 4 + e < elements; ++e) {
      const int at = image * elements + quad * 4 + e;
      const float value = in[at] * (random[static_cast<std::size_t>(e)] < rule.threshold ? 0.0f : rule.kept);
      out[at] = add ? out[at] + value : value;
    }
  });
}

__global__ void add_kernel(int count, const float* a, const float* b, float* out) {
  for_each_index(count, [=](int i) { out[i] = a[i] + b[i]; });
}

__global__ void bias_relu_kernel(int count, Divisor plane, Divisor channels, const float* bias, bool relu,
                                 float* values) {
  for_each_index(count, [=](int i) {
    float value = values[i];
    if (bias != nullptr) value += bias[channels.divide(plane.divide(i).quotient).remainder];
    values[i] = relu && value <= 0.0f ? 0.0f : value;  // a NaN stays one
  });
}

__global__ void pass_on_kernel(int count, const float* from, bool add, float* to) {
  for_each_index(count, [=](int i) { to[i] = add ? to[i] + from[i] : from[i]; });
}

}  // namespace

void activation_forward(Stream& stream, Activation activation, float coefficient, int count, const float* in,
                        float* out) {
  launch(stream, forward_kernel, blocks_for(count), {kThreads}, activation, coefficient, count, in, out);
}

void activation_backward(Stream& stream, Activation activation, float coefficient, int count,
                         const float* grad_out, const float* in, const float* out, bool add, float* grad_in) {
  launch(stream, backward_kernel, blocks_for(count), {kThreads}, activation, coefficient, count, grad_out, in,
         out, add, grad_in);
}

void dropout(Stream& stream, const DropoutRule& rule, const StepInput* input, int images, int elements,
             const float* in, bool add, float* out) {
  launch(stream, dropout_kernel, blocks_for(images * ceil_div(elements, 4)), {kThreads}, rule, input, images,
         elements, in, add, out);
}

void add(Stream& stream, int count, const float* a, const float* b, float* out) {
  launch(stream, add_kernel, blocks_for(count), {kThreads}, count, a, b, out);
}

void bias_relu(Stream& stream, int images, int channels, int plane, const float* bias, bool relu,
               float* values) {
  const int count = images * channels * plane;
  launch(stream, bias_relu_kernel, blocks_for(count), {kThreads}, count, Divisor(plane), Divisor(channels),
         bias, relu, values);
}

void copy_or_add(Stream& stream, int count, const float* from, bool add, float* to) {
  launch(stream, pass_on_kernel, blocks_for(count), {kThreads}, count, from, add, to);
}

}  // namespace sweep::cuda
