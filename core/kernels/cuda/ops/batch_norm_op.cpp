#include "core/kernels/cuda/ops/batch_norm_op.h"

namespace sweep::cuda {
namespace {

int size(std::int64_t extent) { return static_cast<int>(extent); }

}  // namespace

BatchNormOp::BatchNormOp(const Network& network, const Layer& layer, const OpSlots& slots,
                         const OpSchedule& schedule, MemoryPlan& plan, KernelAutotuner& autotuner)
    : shape_{size(layer.input[0]), size(layer.input[1] * layer.input[2]),
             static_cast<float>(std::get<double>(layer.arguments.at("eps"))),
             static_cast<float>(std::get<double>(layer.arguments.at("momentum")))},
      offsets_(parameter_offsets(network, layer)),
      running_mean_(static_cast<int>(network.buffers()[layer.buffers[0]].offset)),
      running_var_(static_cast<int>(network.buffers()[layer.buffers[1]].offset)),
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
  float *running_mean = pass.buffers + (running_mean_ - pass.first_buffer),
        *running_var = pass.buffers + (running_var_ - pass.first_buffer);
  const float *in = pass.data(slots_.in), *weight = parameter_at(pass, offsets_.weight),
              *bias = parameter_at(pass, offsets_.bias);
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
              *weight = parameter_at(pass, offsets_.weight);
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
