#include "core/kernels/cpu/ops/pool_ops.h"

namespace sweep::cpu {
namespace {

// `window`: nullptr of adaptive pooling.
PoolGeometry geometry_of(const Layer& layer, const layers::Window* window) {
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  PoolGeometry g{};
  g.channels = size(layer.input[0]);
  g.in_height = size(layer.input[1]);
  g.in_width = size(layer.input[2]);
  g.out_height = size(layer.output[1]);
  g.out_width = size(layer.output[2]);
  if (window == nullptr) return g;
  g.kernel_height = size(window->kernel_size[0]);
  g.kernel_width = size(window->kernel_size[1]);
  g.stride_y = size(window->stride[0]);
  g.stride_x = size(window->stride[1]);
  g.pad_y = size(window->padding[0]);
  g.pad_x = size(window->padding[1]);
  return g;
}

Average average_of(const layers::AvgPool2d* pool) {
  if (pool == nullptr) return Average::kAdaptive;
  return pool->count_include_pad ? Average::kWithPadding : Average::kInside;
}

}  // namespace

MaxPoolOp::MaxPoolOp(const Layer& layer)
    : Op(element_count(layer.input), element_count(layer.output)),
      geometry_(geometry_of(layer, layer.as<layers::MaxPool2d>())) {}

void MaxPoolOp::forward(const Pass& /*pass*/, const float* /*parameters*/,
                        const ForwardBuffers& buffers) const {
  max_pool_forward(geometry_, buffers.in, buffers.out, buffers.saved);
}

void MaxPoolOp::backward(const float* /*parameters*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in != nullptr)
    max_pool_backward(geometry_, buffers.grad_out, buffers.saved, buffers.grad_in);
}

AvgPoolOp::AvgPoolOp(const Layer& layer)
    : Op(element_count(layer.input), element_count(layer.output)),
      geometry_(geometry_of(layer, layer.as<layers::AvgPool2d>())),
      average_(average_of(layer.as<layers::AvgPool2d>())) {}

void AvgPoolOp::forward(const Pass& /*pass*/, const float* /*parameters*/,
                        const ForwardBuffers& buffers) const {
  avg_pool_forward(geometry_, average_, buffers.in, buffers.out);
}

void AvgPoolOp::backward(const float* /*parameters*/, const BackwardBuffers& buffers) const {
  if (buffers.grad_in != nullptr) avg_pool_backward(geometry_, average_, buffers.grad_out, buffers.grad_in);
}

}  // namespace sweep::cpu
