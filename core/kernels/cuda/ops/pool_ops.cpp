#include "core/kernels/cuda/ops/pool_ops.h"

#include <array>

namespace sweep::cuda {
namespace {

PoolShape pool_shape(const Layer& layer, bool windows) {
  const auto size = [](std::int64_t extent) { return static_cast<int>(extent); };
  PoolShape s{};
  s.channels = size(layer.input[0]);
  s.in_height = size(layer.input[1]);
  s.in_width = size(layer.input[2]);
  s.out_height = size(layer.output[1]);
  s.out_width = size(layer.output[2]);
  if (!windows) return s;
  const auto pair = [&](const char* name, int& y, int& x) {
    const auto value = std::get<std::array<std::int64_t, 2>>(layer.arguments.at(name));
    y = size(value[0]);
    x = size(value[1]);
  };
  pair("kernel_size", s.kernel_height, s.kernel_width);
  pair("stride", s.stride_y, s.stride_x);
  pair("padding", s.pad_y, s.pad_x);
  return s;
}

}  // namespace

MaxPoolOp::MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan)
    : shape_(pool_shape(layer, true)),
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
    : shape_(pool_shape(layer, layer.type == "avg_pool2d")),
      with_padding_(layer.type == "avg_pool2d" && std::get<bool>(layer.arguments.at("count_include_pad"))),
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
