#include "core/kernels/cpu/ops/linear_op.h"

#include <algorithm>

#include "core/kernels/cpu/kernels/activation_kernels.h"
#include "core/kernels/cpu/kernels/linear_kernels.h"

namespace sweep::cpu {

LinearOp::LinearOp(const Network& network, const Layer& layer, bool relu)
    : Op(element_count(layer.input), element_count(layer.output)), relu_(relu) {
  weight_ = network.parameters()[layer.parameters[0]];
  bias_offset_ = linear_panels(out_elements()) * in_elements() * kLanes;
  if (layer.parameters.size() > 1) {
    bias_ = network.parameters()[layer.parameters[1]];
    bias_floats_ = round_up_to_cache_line(bias_.count);
  }
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
  linear_forward(parameters, bias, in_elements(), out_elements(), relu_, buffers.in, buffers.out);
}

void LinearOp::backward(const float* parameters, const BackwardBuffers& buffers) const {
  if (relu_) {
    activation_backward(Activation::kRelu, 0, buffers.grad_out, nullptr, buffers.out, out_elements() * kLanes,
                        buffers.grad_out);
  }
  linear_backward_weights(in_elements(), out_elements(), buffers.in, buffers.grad_out,
                          buffers.grad_parameters,
                          bias_floats_ > 0 ? buffers.grad_parameters + bias_offset_ : nullptr);
  if (buffers.grad_in != nullptr)
    linear_backward_input(parameters, in_elements(), out_elements(), buffers.grad_out, buffers.grad_in);
}

}  // namespace sweep::cpu
