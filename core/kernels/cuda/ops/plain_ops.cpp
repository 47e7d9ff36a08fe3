#include "core/kernels/cuda/ops/plain_ops.h"

#include <array>
#include <cmath>

namespace sweep::cuda {
namespace {

int elements_of(const Shape& shape) { return static_cast<int>(element_count(shape)); }

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

DropoutRule dropout_rule(const Layer& layer, std::uint64_t seed, std::uint32_t number) {
  const double p = std::get<double>(layer.arguments.at("p"));
  return {.seed = seed,
          .number = number,
          .threshold = static_cast<std::uint64_t>(std::ldexp(p, 32)),
          .kept = p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0f};
}

std::vector<LibraryTask> pool_tasks(const OpSlots& slots, const OpTimes& times) {
  std::vector<LibraryTask> tasks = {{.work = Work::kForward, .images = times.images}};
  if (slots.grad_in) tasks.push_back({.work = Work::kInput, .images = times.images, .add = slots.add});
  return tasks;
}

Average average_of(const Layer& layer) {
  if (layer.type == "adaptive_avg_pool2d") return Average::kAdaptive;
  return std::get<bool>(layer.arguments.at("count_include_pad")) ? Average::kWithPadding
                                                                 : Average::kWithoutPadding;
}

}  // namespace

ActivationOp::ActivationOp(const Layer& layer, Activation activation, const OpSlots& slots)
    : activation_(activation),
      coefficient_(activation_coefficient(layer.type, layer.arguments)),
      elements_(elements_of(layer.input)),
      slots_(slots) {}

void ActivationOp::forward(const Pass& pass) const {
  activation_forward(pass.stream, activation_, coefficient_, pass.images * elements_, pass.at(slots_.in),
                     pass.at(slots_.out));
}

void ActivationOp::backward(const Pass& pass) const {
  activation_backward(pass.stream, activation_, coefficient_, pass.images * elements_,
                      pass.at(slots_.grad_out), pass.at(slots_.in), pass.at(slots_.out), slots_.add,
                      pass.at(slots_.grad_in));
}

DropoutOp::DropoutOp(const Layer& layer, std::uint64_t seed, std::uint32_t number, const OpSlots& slots)
    : rule_(dropout_rule(layer, seed, number)), elements_(elements_of(layer.input)), slots_(slots) {}

void DropoutOp::forward(const Pass& pass) const {
  if (pass.training) {
    dropout(pass.stream, rule_, pass.input, pass.images, elements_, pass.at(slots_.in), false,
            pass.at(slots_.out));
  } else {
    pass_on(pass.stream, pass.images * elements_, pass.at(slots_.in), false, pass.at(slots_.out));
  }
}

void DropoutOp::backward(const Pass& pass) const {
  dropout(pass.stream, rule_, pass.input, pass.images, elements_, pass.at(slots_.grad_out), slots_.add,
          pass.at(slots_.grad_in));
}

MaxPoolOp::MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpTimes& times, MemoryPlan& plan,
                     KernelChooser& chooser)
    : shape_(pool_shape(layer, true)),
      slots_(slots),
      library_(share_of(chooser, PoolLayer{shape_},
                        chooser.choose_all(layer.name, PoolLayer{shape_}, pool_tasks(slots, times)), times,
                        plan)),
      winner_(plan.add(
          static_cast<std::size_t>(times.images) * element_count(layer.output) * sizeof(std::int32_t),
          times.forward, times.backward)) {
  if (!library_.has(Work::kInput)) return;
  // It finds the winners again.
  plan.keep(slots.in, times.backward);
  plan.keep(slots.out, times.backward);
}

// A library leaves no winners to own kernels.
bool MaxPoolOp::is_library(int images) const {
  return library_.does(Work::kForward, images) && (!slots_.grad_in || library_.does(Work::kInput, images));
}

void MaxPoolOp::forward(const Pass& pass) const {
  const float* in = pass.at(slots_.in);
  float* out = pass.at(slots_.out);
  if (is_library(pass.images) && library_.run(pass, Work::kForward, {.in = in, .result = out})) return;
  max_pool_forward(pass.stream, shape_, pass.images, in, out, pass.at<std::int32_t>(winner_));
}

void MaxPoolOp::backward(const Pass& pass) const {
  const float* grad_out = pass.at(slots_.grad_out);
  float* grad_in = pass.at(slots_.grad_in);
  if (is_library(pass.images) &&
      library_.run(
          pass, Work::kInput,
          {.in = pass.at(slots_.in), .out = pass.at(slots_.out), .grad_out = grad_out, .result = grad_in}))
    return;
  max_pool_backward(pass.stream, shape_, pass.images, grad_out, pass.at<std::int32_t>(winner_), slots_.add,
                    grad_in);
}

AvgPoolOp::AvgPoolOp(const Layer& layer, const OpSlots& slots, const OpTimes& times, MemoryPlan& plan,
                     KernelChooser& chooser)
    : shape_(pool_shape(layer, layer.type == "avg_pool2d")),
      average_(average_of(layer)),
      slots_(slots),
      library_(share_of(chooser, PoolLayer{shape_, average_},
                        chooser.choose(layer.name, PoolLayer{shape_, average_}, pool_tasks(slots, times)),
                        times, plan)) {}

void AvgPoolOp::forward(const Pass& pass) const {
  const float* in = pass.at(slots_.in);
  float* out = pass.at(slots_.out);
  if (library_.run(pass, Work::kForward, {.in = in, .result = out})) return;
  avg_pool_forward(pass.stream, shape_, average_, pass.images, in, out);
}

void AvgPoolOp::backward(const Pass& pass) const {
  const float* grad_out = pass.at(slots_.grad_out);
  float* grad_in = pass.at(slots_.grad_in);
  if (library_.run(pass, Work::kInput, {.grad_out = grad_out, .result = grad_in})) return;
  avg_pool_backward(pass.stream, shape_, average_, pass.images, grad_out, slots_.add, grad_in);
}

SumOp::SumOp(const Layer& layer, Input first, Input second, Slot out, Slot grad_out)
    : elements_(elements_of(layer.output)), inputs_{first, second}, out_(out), grad_out_(grad_out) {}

void SumOp::forward(const Pass& pass) const {
  add(pass.stream, pass.images * elements_, pass.at(inputs_[0].value), pass.at(inputs_[1].value),
      pass.at(out_));
}

void SumOp::backward(const Pass& pass) const {
  for (const Input& input : inputs_) {
    if (!input.gradient) continue;
    pass_on(pass.stream, pass.images * elements_, pass.at(grad_out_), input.add, pass.at(input.gradient));
  }
}

}  // namespace sweep::cuda
