#include "core/kernels/cpu/ops/linear_op.h"

#include <algorithm>

#include "core/kernels/cpu/kernels/activation_kernels.h"
#include "core/kernels/cpu/kernels/bf16_pairs.h"
#include "core/kernels/cpu/kernels/linear_kernels.h"

namespace sweep::cpu {

LinearOp::LinearOp(const Network& network, const Layer& layer, bool relu, const Bf16Kernels* bf16)
    : Op(element_count(layer.input), element_count(layer.output)),
      relu_(relu),
      forward_bf16_(in_elements() > 1 ? bf16 : nullptr),
      backward_bf16_(out_elements() > 1 ? bf16 : nullptr) {
  weight_ = network.parameters()[layer.parameters[0]];
  bias_offset_ = linear_panels(out_elements()) * in_elements() * kLanes;
  if (layer.parameters.size() > 1) {
    bias_ = network.parameters()[layer.parameters[1]];
    bias_floats_ = round_up_to_cache_line(bias_.count);
  }
  if (forward_bf16_ != nullptr)
    input_pairs_ = AlignedBuffer(linear_panels(out_elements()) * pair_count(in_elements()) * kLanes);
  if (backward_bf16_ != nullptr)
    output_pairs_ = AlignedBuffer(linear_panels(pair_count(out_elements())) * in_elements() * kLanes);
}

std::size_t LinearOp::scratch_floats() const {
  const std::size_t in = forward_bf16_ != nullptr ? in_elements() : 0;
  const std::size_t out = backward_bf16_ != nullptr ? out_elements() : 0;
  return pair_count(std::max(in, out)) * kLanes;
}

void LinearOp::prepare(const float* parameters) {
  if (forward_bf16_ != nullptr)
    pack_linear_input_pairs(parameters, in_elements(), out_elements(), input_pairs_.data());
  if (backward_bf16_ != nullptr)
    pack_linear_output_pairs(parameters, in_elements(), out_elements(), output_pairs_.data());
}

void LinearOp::import_parameters(std::span<const float> network_parameters, float* parameters) const {
  pack_linear_weights(network_parameters.data() + weight_.offset, in_elements(), out_elements(), parameters);
  std::copy_n(network_parameters.data() + bias_.offset, bias_.count, parameters + bias_offset_);
}

void LinearOp::export_parameters(const float* parameters, std::span<float> network_parameters) const {
  unpack_linear_weights(parameters, in_elements(), out_elements(),
                        network_parameters.data() + weight_.offset);
  std::copy_n(parameters + bias_offset_, bias_.count, network_parameters.data() + bias_.offset);
}

void LinearOp::forward(const Pass& /*pass*/, const float* parameters, const ForwardBuffers& buffers) const {
  const float* bias = bias_floats_ > 0 ? parameters + bias_offset_ : nullptr;
  if (forward_bf16_ == nullptr) {
    linear_forward(parameters, bias, in_elements(), out_elements(), relu_, buffers.in, buffers.out);
    return;
  }
  pack_channel_pairs(buffers.in, in_elements(), kLanes, kLanes, buffers.scratch);
  forward_bf16_->linear_forward(input_pairs_.data(), bias, pair_count(in_elements()), out_elements(), relu_,
                                buffers.scratch, buffers.out);
}

void LinearOp::backward(const float* parameters, const BackwardBuffers& buffers) const {
  if (relu_) {
    activation_backward(Activation::kRelu, 0, buffers.grad_out, nullptr, buffers.out, out_elements() * kLanes,
                        buffers.grad_out);
  }
  linear_backward_weights(in_elements(), out_elements(), buffers.in, buffers.grad_out,
                          buffers.grad_parameters,
                          bias_floats_ > 0 ? buffers.grad_parameters + bias_offset_ : nullptr);
  if (buffers.grad_in == nullptr) return;
  if (backward_bf16_ == nullptr) {
    linear_backward_input(parameters, in_elements(), out_elements(), buffers.grad_out, buffers.grad_in);
    return;
  }
  pack_channel_pairs(buffers.grad_out, out_elements(), kLanes, kLanes, buffers.scratch);
  backward_bf16_->linear_backward_input(output_pairs_.data(), in_elements(), pair_count(out_elements()),
                                        buffers.scratch, buffers.grad_in);
}

}  // namespace sweep::cpu
