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

std::vector<LibraryTask> pool_tasks(const OpSlots& slots, const OpSchedule& schedule) {
  std::vector<LibraryTask> tasks = {{.direction = Direction::kForward, .images = schedule.images}};
  if (slots.grad_in)
    tasks.push_back({.direction = Direction::kBackwardInput, .images = schedule.images, .add = slots.add});
  return tasks;
}

Average average_of(const Layer& layer) {
  if (layer.type == "adaptive_avg_pool2d") return Average::kAdaptive;
  return std::get<bool>(layer.arguments.at("count_include_pad")) ? Average::kWithPadding
                                                                 : Average::kWithoutPadding;
}

}  // namespace

MaxPoolOp::MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan,
                     KernelAutotuner& autotuner)
    : shape_(pool_shape(layer, true)),
      slots_(slots),
      library_(make_library_plans(
          autotuner, PoolLayer{shape_},
          autotuner.choose_all_or_none(layer.name, PoolLayer{shape_}, pool_tasks(slots, schedule)), schedule,
          plan)),
      argmax_(plan.add_rows(static_cast<std::size_t>(schedule.images),
                            element_count(layer.output) * sizeof(std::int32_t), schedule.forward,
                            schedule.backward)) {
  if (!library_.has(Direction::kBackwardInput)) return;
  // cuDNN saves no argmax: its backward compares input and output again.
  plan.keep(slots.in, schedule.backward);
  plan.keep(slots.out, schedule.backward);
}

// Forward and backward have to be of one kind: a library's forward leaves no argmax to the built-in backward.
bool MaxPoolOp::runs_library(int images) const {
  return library_.can_run(Direction::kForward, images) &&
         (!slots_.grad_in || library_.can_run(Direction::kBackwardInput, images));
}

void MaxPoolOp::forward(const Pass& pass) const {
  const float* in = pass.data(slots_.in);
  float* out = pass.data(slots_.out);
  if (runs_library(pass.images) && library_.run(pass, Direction::kForward, {.in = in, .result = out})) return;
  max_pool_forward(pass.stream, shape_, pass.images, in, out, pass.data<std::int32_t>(argmax_));
}

void MaxPoolOp::backward(const Pass& pass) const {
  const float* grad_out = pass.data(slots_.grad_out);
  float* grad_in = pass.data(slots_.grad_in);
  if (runs_library(pass.images) && library_.run(pass, Direction::kBackwardInput,
                                                {.in = pass.data(slots_.in),
                                                 .out = pass.data(slots_.out),
                                                 .grad_out = grad_out,
                                                 .result = grad_in}))
    return;
  max_pool_backward(pass.stream, shape_, pass.images, grad_out, pass.data<std::int32_t>(argmax_), slots_.add,
                    grad_in);
}

AvgPoolOp::AvgPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan,
                     KernelAutotuner& autotuner)
    : shape_(pool_shape(layer, layer.type == "avg_pool2d")),
      average_(average_of(layer)),
      slots_(slots),
      library_(make_library_plans(
          autotuner, PoolLayer{shape_, average_},
          autotuner.choose(layer.name, PoolLayer{shape_, average_}, pool_tasks(slots, schedule)), schedule,
          plan)) {}

void AvgPoolOp::forward(const Pass& pass) const {
  const float* in = pass.data(slots_.in);
  float* out = pass.data(slots_.out);
  if (library_.run(pass, Direction::kForward, {.in = in, .result = out})) return;
  avg_pool_forward(pass.stream, shape_, average_, pass.images, in, out);
}

void AvgPoolOp::backward(const Pass& pass) const {
  const float* grad_out = pass.data(slots_.grad_out);
  float* grad_in = pass.data(slots_.grad_in);
  if (library_.run(pass, Direction::kBackwardInput, {.grad_out = grad_out, .result = grad_in})) return;
  avg_pool_backward(pass.stream, shape_, average_, pass.images, grad_out, slots_.add, grad_in);
}

}  // namespace sweep::cuda
