#include "core/kernels/cpu/ops/pool_ops.h"

#include <array>

namespace sweep::cpu {
namespace {

PoolGeometry geometry_of(const Layer& layer, bool windows) {
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  PoolGeometry g{size(layer.input[0]),
                 size(layer.input[1]),
                 size(layer.input[2]),
                 size(layer.output[1]),
                 size(layer.output[2]),
                 0,
                 0,
                 0,
                 0,
                 0,
                 0};
  if (!windows) return g;
  const auto pair = [&](const char* name, std::size_t& y, std::size_t& x) {
    const auto value = std::get<std::array<std::int64_t, 2>>(layer.arguments.at(name));
    y = size(value[0]);
    x = size(value[1]);
  };
  pair("kernel_size", g.kernel_height, g.kernel_width);
  pair("stride", g.stride_y, g.stride_x);
  pair("padding", g.pad_y, g.pad_x);
  return g;
}

}  // namespace

MaxPoolOp::MaxPoolOp(const Layer& layer)
    : Op(element_count(layer.input), element_count(layer.output)), geometry_(geometry_of(layer, true)) {}

void MaxPoolOp::forward(const Pass& /*pass*/, const float* /*parameters*/,
                        const ForwardBuffers& buffers) const {
  max_pool_forward(geometry_, buffers.in, buffers.out, buffers.saved);
}

void MaxPoolOp::backward(const float* /*parameters*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in != nullptr)
    max_pool_backward(geometry_, buffers.grad_out, buffers.saved, buffers.grad_in);
}

AvgPoolOp::AvgPoolOp(const Layer& layer, Average average)
    : Op(element_count(layer.input), element_count(layer.output)),
      geometry_(geometry_of(layer, average != Average::kAdaptive)),
      average_(average) {}

void AvgPoolOp::forward(const Pass& /*pass*/, const float* /*parameters*/,
                        const ForwardBuffers& buffers) const {
  avg_pool_forward(geometry_, average_, buffers.in, buffers.out);
}

void AvgPoolOp::backward(const float* /*parameters*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in != nullptr) avg_pool_backward(geometry_, average_, buffers.grad_out, buffers.grad_in);
}

}  // namespace sweep::cpu
