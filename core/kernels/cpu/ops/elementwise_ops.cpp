#include "core/kernels/cpu/ops/elementwise_ops.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace sweep::cpu {

ActivationOp::ActivationOp(const Layer& layer)
    : Op(element_count(layer.input), element_count(layer.output)),
      activated_(std::get<layers::Activated>(layer.kind)) {}

void ActivationOp::forward(const Pass& /*pass*/, const float* /*own*/, const ForwardBuffers& buffers) const {
  activation_forward(activated_.function, activated_.coefficient, buffers.in, in_elements() * kLanes,
                     buffers.out);
}

void ActivationOp::backward(const float* /*own*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in == nullptr) return;
  activation_backward(activated_.function, activated_.coefficient, buffers.grad_out, buffers.in, buffers.out,
                      in_elements() * kLanes, buffers.grad_in);
}

DropoutOp::DropoutOp(const Layer& layer, std::uint32_t number)
    : Op(element_count(layer.input), element_count(layer.output)),
      number_(number),
      probability_(std::get<layers::Dropout>(layer.kind).p) {}

void DropoutOp::forward(const Pass& pass, const float* /*own*/, const ForwardBuffers& buffers) const {
  const std::size_t floats = in_elements() * kLanes;
  if (!pass.training || probability_ == 0) {
    std::fill_n(buffers.saved, floats, 1.0f);
    std::copy_n(buffers.in, floats, buffers.out);
    return;
  }
  const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(pass.seed),
                                         static_cast<std::uint32_t>(pass.seed >> 32)};
  const std::uint32_t use = static_cast<std::uint32_t>(RandomUse::kDropout) << 24 | number_;
  // Dropped if the random integer is below p · 2³²; p = 1 drops everything.
  const auto threshold = static_cast<std::uint64_t>(std::ldexp(probability_, 32));
  const float kept = probability_ < 1 ? static_cast<float>(1 / (1 - probability_)) : 0.0f;
  for (std::size_t element = 0; element < in_elements(); element += 4) {
    const std::size_t count = std::min<std::size_t>(4, in_elements() - element);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto random = philox4x32(
          {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(pass.first_image + lane),
           static_cast<std::uint32_t>(pass.step), use},
          key);
      for (std::size_t i = 0; i < count; ++i)
        buffers.saved[(element + i) * kLanes + lane] = random[i] < threshold ? 0.0f : kept;
    }
  }
  for (std::size_t i = 0; i < floats; ++i) buffers.out[i] = buffers.in[i] * buffers.saved[i];
}

void DropoutOp::backward(const float* /*own*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in == nullptr) return;
  const std::size_t floats = in_elements() * kLanes;
  for (std::size_t i = 0; i < floats; ++i) buffers.grad_in[i] = buffers.grad_out[i] * buffers.saved[i];
}

SumOp::SumOp(const Layer& layer, bool relu)
    : Op(element_count(layer.input), element_count(layer.output)), relu_(relu) {}

void SumOp::forward(const Pass& /*pass*/, const float* /*own*/, const ForwardBuffers& buffers) const {
  sum_values(buffers.in, buffers.shortcut, out_elements() * kLanes, relu_, buffers.out);
}

void SumOp::backward(const float* /*own*/, const BackwardBuffers& buffers) const {
  if (!relu_) return;
  activation_backward(Activation::kRelu, 0, buffers.grad_out, nullptr, buffers.out, out_elements() * kLanes,
                      buffers.grad_out);
}

}  // namespace sweep::cpu
