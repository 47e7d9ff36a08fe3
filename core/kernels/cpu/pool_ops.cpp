#include "core/kernels/cpu/pool_ops.h"

#include <array>

namespace sweep::cpu {

MaxPoolOp::MaxPoolOp(const Layer& layer) : Op(element_count(layer.input), element_count(layer.output)) {
  const auto pair = [&](const char* name) {
    const auto value = std::get<std::array<std::int64_t, 2>>(layer.arguments.at(name));
    return std::array{static_cast<std::size_t>(value[0]), static_cast<std::size_t>(value[1])};
  };
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  const auto kernel = pair("kernel_size"), stride = pair("stride"), padding = pair("padding");
  geometry_ = {size(layer.input[0]),
               size(layer.input[1]),
               size(layer.input[2]),
               size(layer.output[1]),
               size(layer.output[2]),
               kernel[0],
               kernel[1],
               stride[0],
               stride[1],
               padding[0],
               padding[1]};
}

void MaxPoolOp::forward(const float* /*own*/, const float* in, float* saved, float* out) const {
  max_pool_forward(geometry_, in, out, saved);
}

void MaxPoolOp::backward(const float* /*own*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in != nullptr)
    max_pool_backward(geometry_, buffers.grad_out, buffers.saved, buffers.grad_in);
}

void ReluOp::forward(const float* /*own*/, const float* in, float* /*saved*/, float* out) const {
  relu_forward(in, in_elements() * kLanes, out);
}

void ReluOp::backward(const float* /*own*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in != nullptr)
    relu_backward(buffers.grad_out, buffers.out, in_elements() * kLanes, buffers.grad_in);
}

}  // namespace sweep::cpu
