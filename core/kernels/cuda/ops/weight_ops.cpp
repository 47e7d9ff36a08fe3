#include "core/kernels/cuda/ops/weight_ops.h"

#include <algorithm>
#include <array>

#include "core/kernels/cuda/kernels/elementwise.h"

namespace sweep::cuda {
namespace {

int size(std::int64_t extent) { return static_cast<int>(extent); }

std::array<int, 2> pair_of(const Layer& layer, const char* name) {
  const auto pair = std::get<std::array<std::int64_t, 2>>(layer.arguments.at(name));
  return {size(pair[0]), size(pair[1])};
}

ConvShape conv_shape(const Layer& layer) {
  const auto kernel = pair_of(layer, "kernel_size"), stride = pair_of(layer, "stride"),
             padding = pair_of(layer, "padding"), dilation = pair_of(layer, "dilation");
  return {.in_channels = size(layer.input[0]),
          .in_height = size(layer.input[1]),
          .in_width = size(layer.input[2]),
          .out_channels = size(layer.output[0]),
          .out_height = size(layer.output[1]),
          .out_width = size(layer.output[2]),
          .kernel_height = kernel[0],
          .kernel_width = kernel[1],
          .stride_y = stride[0],
          .stride_x = stride[1],
          .pad_y = padding[0],
          .pad_x = padding[1],
          .dilation_y = dilation[0],
          .dilation_x = dilation[1],
          .groups = size(std::get<std::int64_t>(layer.arguments.at("groups"))),
          .bias = layer.parameters.size() > 1};
}

const float* at(const Pass& pass, int offset) { return offset < 0 ? nullptr : pass.parameters + offset; }

Slot partials_slot(MemoryPlan& plan, const OpSchedule& schedule, int parts, int floats) {
  return plan.add(static_cast<std::size_t>(parts) * static_cast<std::size_t>(floats) * sizeof(float),
                  schedule.backward, schedule.end);
}

// What the autotuner decides about for a convolution or linear layer.
std::vector<LibraryTask> tasks_of(const ParameterOffsets& offsets, bool relu, const OpSlots& slots,
                                  const OpSchedule& schedule) {
  const auto task = [&](Direction direction) {
    return LibraryTask{.direction = direction,
                       .images = schedule.images,
                       .relu = relu && direction == Direction::kForward,
                       .add = slots.add && direction == Direction::kBackwardInput,
                       .weight_offset = offsets.weight,
                       .bias_offset = std::max(offsets.bias, 0)};
  };
  std::vector<LibraryTask> tasks = {task(Direction::kForward)};
  if (slots.grad_out) tasks.push_back(task(Direction::kBackwardWeights));
  if (slots.grad_in) tasks.push_back(task(Direction::kBackwardInput));
  return tasks;
}

// Takes the gradient back through the relu that is fused into the op, in place.
void relu_backward(const Pass& pass, const OpSlots& slots, int count) {
  float* gradient = pass.data(slots.grad_out);
  activation_backward(pass.stream, Activation::kRelu, 0, count, gradient, pass.data(slots.out),
                      pass.data(slots.out), false, gradient);
}

}  // namespace

ParameterOffsets parameter_offsets(const Network& network, const Layer& layer) {
  ParameterOffsets offsets;
  if (!layer.parameters.empty())
    offsets.weight = static_cast<int>(network.parameters()[layer.parameters[0]].offset);
  if (layer.parameters.size() > 1)
    offsets.bias = static_cast<int>(network.parameters()[layer.parameters[1]].offset);
  return offsets;
}

ConvOp::ConvOp(const Network& network, const Layer& layer, bool relu, const OpSlots& slots,
               const OpSchedule& schedule, MemoryPlan& plan, KernelAutotuner& autotuner)
    : shape_(conv_shape(layer)),
      offsets_(parameter_offsets(network, layer)),
      relu_(relu),
      outputs_(size(static_cast<std::int64_t>(element_count(layer.output)))),
      slots_(slots),
      library_(make_library_plans(
          autotuner, shape_, autotuner.choose(layer.name, shape_, tasks_of(offsets_, relu, slots, schedule)),
          schedule, plan)),
      parts_(library_.has(Direction::kBackwardWeights) ? 1 : conv_gradient_parts(shape_, schedule.images)),
      partials_(partials_slot(plan, schedule, parts_, shape_.gradient_floats())) {}

void ConvOp::forward(const Pass& pass) const {
  const float *in = pass.data(slots_.in), *weight = at(pass, offsets_.weight),
              *bias = at(pass, offsets_.bias);
  float* out = pass.data(slots_.out);
  if (library_.run(pass, Direction::kForward, {.in = in, .weight = weight, .bias = bias, .result = out}))
    return;
  conv_forward(pass.stream, shape_, pass.images, in, weight, bias, relu_, out);
}

void ConvOp::backward(const Pass& pass) const {
  if (relu_) relu_backward(pass, slots_, pass.images * outputs_);
  const float *in = pass.data(slots_.in), *grad_out = pass.data(slots_.grad_out);
  float* gradient = pass.data(partials_);
  if (!library_.run(pass, Direction::kBackwardWeights, {.in = in, .grad_out = grad_out, .result = gradient}))
    conv_backward_weights(pass.stream, shape_, pass.images, parts_, in, grad_out, gradient);
  if (!slots_.grad_in) return;
  const float* weight = at(pass, offsets_.weight);
  float* grad_in = pass.data(slots_.grad_in);
  if (!library_.run(pass, Direction::kBackwardInput,
                    {.weight = weight, .grad_out = grad_out, .result = grad_in}))
    conv_backward_input(pass.stream, shape_, pass.images, grad_out, weight, slots_.add, grad_in);
}

std::vector<PartialGradient> ConvOp::gradients() const {
  return {{partials_, offsets_.weight, shape_.gradient_floats(), parts_}};
}

LinearOp::LinearOp(const Network& network, const Layer& layer, bool relu, const OpSlots& slots,
                   const OpSchedule& schedule, MemoryPlan& plan, KernelAutotuner& autotuner)
    : shape_{size(layer.input[0]), size(layer.output[0]), layer.parameters.size() > 1},
      offsets_(parameter_offsets(network, layer)),
      relu_(relu),
      slots_(slots),
      library_(make_library_plans(
          autotuner, shape_, autotuner.choose(layer.name, shape_, tasks_of(offsets_, relu, slots, schedule)),
          schedule, plan)),
      parts_(library_.has(Direction::kBackwardWeights) ? 1 : linear_gradient_parts(shape_, schedule.images)),
      partials_(partials_slot(plan, schedule, parts_, shape_.gradient_floats())) {}

void LinearOp::forward(const Pass& pass) const {
  const float *in = pass.data(slots_.in), *weight = at(pass, offsets_.weight),
              *bias = at(pass, offsets_.bias);
  float* out = pass.data(slots_.out);
  if (library_.run(pass, Direction::kForward, {.in = in, .weight = weight, .bias = bias, .result = out}))
    return;
  linear_forward(pass.stream, shape_, pass.images, in, weight, bias, relu_, out);
}

void LinearOp::backward(const Pass& pass) const {
  if (relu_) relu_backward(pass, slots_, pass.images * shape_.out_features);
  const float *in = pass.data(slots_.in), *grad_out = pass.data(slots_.grad_out);
  float* gradient = pass.data(partials_);
  if (!library_.run(pass, Direction::kBackwardWeights, {.in = in, .grad_out = grad_out, .result = gradient}))
    linear_backward_weights(pass.stream, shape_, pass.images, parts_, in, grad_out, gradient);
  if (!slots_.grad_in) return;
  const float* weight = at(pass, offsets_.weight);
  float* grad_in = pass.data(slots_.grad_in);
  if (!library_.run(pass, Direction::kBackwardInput,
                    {.weight = weight, .grad_out = grad_out, .result = grad_in}))
    linear_backward_input(pass.stream, shape_, pass.images, grad_out, weight, slots_.add, grad_in);
}

std::vector<PartialGradient> LinearOp::gradients() const {
  return {{partials_, offsets_.weight, shape_.gradient_floats(), parts_}};
}

BatchNormOp::BatchNormOp(const Network& network, const Layer& layer, const OpSlots& slots,
                         const OpSchedule& schedule, MemoryPlan& plan, KernelAutotuner& autotuner)
    : shape_{size(layer.input[0]), size(layer.input[1] * layer.input[2]),
             static_cast<float>(std::get<double>(layer.arguments.at("eps"))),
             static_cast<float>(std::get<double>(layer.arguments.at("momentum")))},
      offsets_(parameter_offsets(network, layer)),
      running_mean_(network.buffers()[layer.buffers[0]].offset),
      running_var_(network.buffers()[layer.buffers[1]].offset),
      slots_(slots),
      library_(make_library_plans(autotuner, shape_, choose_directions(layer, schedule, autotuner), schedule,
                                  plan)) {
  const std::size_t channels = static_cast<std::size_t>(shape_.channels) * sizeof(float);
  // A smaller batch has at most as many parts, so the scratch of the full batch is enough.
  const std::size_t scratch =
      static_cast<std::size_t>(batch_norm_scratch_floats(shape_, schedule.images)) * sizeof(float);
  mean_ = plan.add(channels, schedule.forward, schedule.backward);
  inverse_ = plan.add(channels, schedule.forward, schedule.backward);
  forward_scratch_ = plan.add(scratch, schedule.forward, schedule.forward);
  backward_scratch_ = plan.add(scratch, schedule.backward, schedule.backward);
  if (offsets_.weight >= 0) gradient_ = plan.add(2 * channels, schedule.backward, schedule.end);
}

// The directions that the library does. None without parameters, which cuDNN demands, or with arrays that are
// not 16-byte aligned, as cuDNN expects.
std::vector<LibraryTask> BatchNormOp::choose_directions(const Layer& layer, const OpSchedule& schedule,
                                                        KernelAutotuner& autotuner) const {
  constexpr std::size_t kFloats = 16 / sizeof(float);
  if (offsets_.weight < 0 || shape_.channels % kFloats != 0 || offsets_.weight % kFloats != 0 ||
      offsets_.bias % kFloats != 0 || running_mean_ % kFloats != 0 || running_var_ % kFloats != 0)
    return {};
  const auto task = [&](Direction direction) {
    return LibraryTask{.direction = direction,
                       .images = schedule.images,
                       .add = slots_.add && direction == Direction::kBackwardInput,
                       .weight_offset = offsets_.weight,
                       .bias_offset = offsets_.bias};
  };
  std::vector<LibraryTask> tasks = autotuner.choose(layer.name, shape_, {task(Direction::kInference)});
  if (!slots_.grad_in) return tasks;
  for (const LibraryTask& training_task : autotuner.choose_all_or_none(
           layer.name, shape_, {task(Direction::kForward), task(Direction::kBackwardInput)}))
    tasks.push_back(training_task);
  return tasks;
}

// Forward and backward have to be of one kind: they exchange mean and inverse in the library's own form.
bool BatchNormOp::trains_by_library(int images) const {
  return library_.can_run(Direction::kForward, images) && library_.can_run(Direction::kBackwardInput, images);
}

void BatchNormOp::forward(const Pass& pass) const {
  float *mean = pass.data(mean_), *inverse = pass.data(inverse_);
  float *running_mean = pass.buffers + running_mean_, *running_var = pass.buffers + running_var_;
  const float *in = pass.data(slots_.in), *weight = at(pass, offsets_.weight),
              *bias = at(pass, offsets_.bias);
  float* out = pass.data(slots_.out);
  if ((!pass.training || trains_by_library(pass.images)) &&
      library_.run(pass, pass.training ? Direction::kForward : Direction::kInference,
                   {.in = in,
                    .weight = weight,
                    .bias = bias,
                    .result = out,
                    .mean = mean,
                    .inverse = inverse,
                    .running_mean = running_mean,
                    .running_var = running_var}))
    return;
  if (pass.training) {
    batch_norm_statistics(pass.stream, shape_, pass.images, in, pass.data(forward_scratch_), mean, inverse,
                          running_mean, running_var);
  } else {
    batch_norm_running(pass.stream, shape_, running_mean, running_var, mean, inverse);
  }
  batch_norm_forward(pass.stream, shape_, pass.images, in, mean, inverse, weight, bias, out);
}

void BatchNormOp::backward(const Pass& pass) const {
  const float *in = pass.data(slots_.in), *grad_out = pass.data(slots_.grad_out),
              *weight = at(pass, offsets_.weight);
  float *mean = pass.data(mean_), *inverse = pass.data(inverse_), *gradient = pass.data(gradient_),
        *grad_in = pass.data(slots_.grad_in);
  if (trains_by_library(pass.images) && library_.run(pass, Direction::kBackwardInput,
                                                     {.in = in,
                                                      .weight = weight,
                                                      .grad_out = grad_out,
                                                      .result = grad_in,
                                                      .mean = mean,
                                                      .inverse = inverse,
                                                      .grad_parameters = gradient}))
    return;
  batch_norm_backward(pass.stream, shape_, pass.images, in, grad_out, mean, inverse, weight,
                      pass.data(backward_scratch_), gradient, slots_.add, grad_in);
}

std::vector<PartialGradient> BatchNormOp::gradients() const {
  if (offsets_.weight < 0) return {};
  return {{gradient_, offsets_.weight, 2 * shape_.channels, 1}};
}

}  // namespace sweep::cuda
