#include "core/kernels/cuda/ops/pool_ops.h"

namespace sweep::cuda {
namespace {

// `window`: nullptr of adaptive pooling.
PoolShape pool_shape(const Layer& layer, const layers::Window* window) {
  const auto size = [](std::int64_t extent) { return static_cast<int>(extent); };
  PoolShape s{};
  s.channels = size(layer.input[0]);
  s.in_height = size(layer.input[1]);
  s.in_width = size(layer.input[2]);
  s.out_height = size(layer.output[1]);
  s.out_width = size(layer.output[2]);
  if (window == nullptr) return s;
  s.kernel_height = size(window->kernel_size[0]);
  s.kernel_width = size(window->kernel_size[1]);
  s.stride_y = size(window->stride[0]);
  s.stride_x = size(window->stride[1]);
  s.pad_y = size(window->padding[0]);
  s.pad_x = size(window->padding[1]);
  return s;
}

}  // namespace

MaxPoolOp::MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan)
    : shape_(pool_shape(layer, layer.as<layers::MaxPool2d>())),
      slots_(slots),
      argmax_(plan.add_rows(static_cast<std::size_t>(schedule.images),
                            element_count(layer.output) * sizeof(std::int32_t), schedule.forward,
                            schedule.backward)) {}

void MaxPoolOp::forward(const Pass& pass) const {
  max_pool_forward(pass.stream, shape_, pass.images, pass.data(slots_.in), pass.data(slots_.out),
                   pass.data<std::int32_t>(argmax_));
}

void MaxPoolOp::backward(const Pass& pass) const {
  max_pool_backward(pass.stream, shape_, pass.images, pass.data(slots_.grad_out),
                    pass.data<std::int32_t>(argmax_), slots_.add, pass.data(slots_.grad_in));
}

AvgPoolOp::AvgPoolOp(const Layer& layer, const OpSlots& slots)
    : shape_(pool_shape(layer, layer.as<layers::AvgPool2d>())),
      with_padding_(layer.is<layers::AvgPool2d>() && layer.as<layers::AvgPool2d>()->count_include_pad),
      slots_(slots) {}

void AvgPoolOp::forward(const Pass& pass) const {
  avg_pool_forward(pass.stream, shape_, with_padding_, pass.images, pass.data(slots_.in),
                   pass.data(slots_.out));
}

void AvgPoolOp::backward(const Pass& pass) const {
  avg_pool_backward(pass.stream, shape_, with_padding_, pass.images, pass.data(slots_.grad_out), slots_.add,
                    pass.data(slots_.grad_in));
}

}  // namespace sweep::cuda
