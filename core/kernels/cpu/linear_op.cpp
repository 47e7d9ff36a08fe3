#include "core/kernels/cpu/linear_op.h"

#include <algorithm>

#include "core/kernels/cpu/activation_kernels.h"
#include "core/kernels/cpu/linear_kernels.h"

namespace sweep::cpu {

LinearOp::LinearOp(const Network& network, const Layer& layer, bool relu)
    : Op(element_count(layer.input), element_count(layer.output)), relu_(relu) {
  weight_ = network.parameters()[layer.parameters[0]];
  bias_offset_ = linear_panels(out_elements()) * in_elements() * kLanes;
  if (layer.parameters.size() > 1) {
    bias_ = network.parameters()[layer.parameters[1]];
    bias_floats_ = round_to_line(bias_.count);
  }
}

void LinearOp::import_parameters(std::span<const float> all, float* own) const {
  pack_linear_weights(all.data() + weight_.offset, in_elements(), out_elements(), own);
  std::copy_n(all.data() + bias_.offset, bias_.count, own + bias_offset_);
}

void LinearOp::export_parameters(const float* own, std::span<float> all) const {
  unpack_linear_weights(own, in_elements(), out_elements(), all.data() + weight_.offset);
  std::copy_n(own + bias_offset_, bias_.count, all.data() + bias_.offset);
}

void LinearOp::forward(const Pass& /*pass*/, const float* own, const ForwardBuffers& buffers) const {
  const float* bias = bias_floats_ > 0 ? own + bias_offset_ : nullptr;
  linear_forward(own, bias, in_elements(), out_elements(), relu_, buffers.in, buffers.out);
}

void LinearOp::backward(const float* own, const BackwardBuffers& buffers) const {
  if (relu_) {
    activation_backward(Activation::kRelu, 0, buffers.grad_out, nullptr, buffers.out, out_elements() * kLanes,
                        buffers.grad_out);
  }
  linear_backward_weights(in_elements(), out_elements(), buffers.in, buffers.grad_out,
                          buffers.grad_parameters,
                          bias_floats_ > 0 ? buffers.grad_parameters + bias_offset_ : nullptr);
  if (buffers.grad_in != nullptr) {
    linear_backward_input(own, in_elements(), out_elements(), buffers.grad_out, buffers.grad_in);
  }
}

}  // namespace sweep::cpu
