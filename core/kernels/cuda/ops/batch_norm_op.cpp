#include "core/kernels/cuda/ops/batch_norm_op.h"

namespace sweep::cuda {

BatchNormOp::BatchNormOp(const Network& network, const Layer& layer, const OpSlots& slots,
                         const OpSchedule& schedule, MemoryPlan& plan)
    : shape_{static_cast<int>(layer.input[0]), static_cast<int>(layer.input[1] * layer.input[2]),
             static_cast<float>(std::get<layers::BatchNorm2d>(layer.kind).eps),
             static_cast<float>(std::get<layers::BatchNorm2d>(layer.kind).momentum)},
      offsets_(parameter_offsets(network, layer)),
      running_mean_(static_cast<int>(network.buffers()[layer.buffers[0]].offset)),
      running_var_(static_cast<int>(network.buffers()[layer.buffers[1]].offset)),
      slots_(slots) {
  const std::size_t channels = static_cast<std::size_t>(shape_.channels) * sizeof(float);
  // A smaller batch has at most as many shares, so the scratch of the full batch is enough.
  const std::size_t scratch =
      static_cast<std::size_t>(batch_norm_scratch_floats(shape_, schedule.images)) * sizeof(float);
  // What all shares of a joint pass read is there until the last of them has, when the first has gone on.
  const int end = schedule.joint ? schedule.end : schedule.backward;
  mean_ = plan.add(channels, schedule.forward, end);
  inverse_ = plan.add(channels, schedule.forward, end);
  forward_scratch_ = plan.add(scratch, schedule.forward, schedule.forward);
  backward_scratch_ = plan.add(scratch, schedule.backward, schedule.backward);
  totals_ = plan.add(2 * channels, schedule.backward, end);
  if (offsets_.weight >= 0) gradient_ = plan.add(2 * channels, schedule.backward, schedule.end);
}

std::size_t BatchNormOp::sum_bytes(Phase phase) const {
  const auto channels = static_cast<std::size_t>(shape_.channels);
  if (phase == Phase::kForward) return 2 * channels * sizeof(double);
  return slots_.grad_in ? 2 * channels * sizeof(float) : 0;
}

void BatchNormOp::leave_sums(const Pass& pass, Phase phase) const {
  if (phase == Phase::kForward) {
    batch_norm_share_statistics(pass.stream, shape_, pass.images, pass.data(slots_.in),
                                pass.data(forward_scratch_), pass.sums<double>(sum_bytes(phase)));
  } else {
    sum_gradients(pass, pass.sums<float>(sum_bytes(phase)));
  }
}

void BatchNormOp::join_sums(const Pass& pass, Phase phase) const {
  const JointPass& joint = *pass.joint;
  if (phase == Phase::kForward) {
    batch_norm_join_statistics(pass.stream, shape_, joint.sizes, reinterpret_cast<const double*>(joint.sums),
                               pass.common_data(mean_), pass.common_data(inverse_),
                               pass.buffers + (running_mean_ - pass.first_buffer),
                               pass.buffers + (running_var_ - pass.first_buffer));
  } else {
    batch_norm_join_gradients(pass.stream, shape_, joint.sizes, reinterpret_cast<const float*>(joint.sums),
                              pass.common_data(totals_));
  }
}

void BatchNormOp::forward(const Pass& pass) const {
  float *mean = pass.common_data(mean_), *inverse = pass.common_data(inverse_);
  float *running_mean = pass.buffers + (running_mean_ - pass.first_buffer),
        *running_var = pass.buffers + (running_var_ - pass.first_buffer);
  const float *in = pass.data(slots_.in), *weight = parameter_at(pass, offsets_.weight),
              *bias = parameter_at(pass, offsets_.bias);
  float* out = pass.data(slots_.out);
  if (!pass.training) {
    batch_norm_running(pass.stream, shape_, running_mean, running_var, mean, inverse);
  } else if (pass.joint == nullptr) {
    batch_norm_statistics(pass.stream, shape_, pass.images, in, pass.data(forward_scratch_), mean, inverse,
                          running_mean, running_var);
  }
  batch_norm_forward(pass.stream, shape_, pass.images, in, mean, inverse, weight, bias, out);
}

// The gradient of the parameters is that of the pass's own samples.
void BatchNormOp::sum_gradients(const Pass& pass, float* totals) const {
  batch_norm_sum_gradients(pass.stream, shape_, pass.images, pass.data(slots_.in), pass.data(slots_.grad_out),
                           pass.common_data(mean_), pass.common_data(inverse_), pass.data(backward_scratch_),
                           totals, pass.data(gradient_));
}

void BatchNormOp::backward(const Pass& pass) const {
  const float *in = pass.data(slots_.in), *grad_out = pass.data(slots_.grad_out),
              *weight = parameter_at(pass, offsets_.weight);
  float *mean = pass.common_data(mean_), *inverse = pass.common_data(inverse_),
        *totals = pass.common_data(totals_), *grad_in = pass.data(slots_.grad_in);
  const bool joint = pass.joint != nullptr && grad_in != nullptr;
  if (!joint) sum_gradients(pass, pass.data(totals_));
  if (grad_in == nullptr) return;
  const std::int64_t images = joint ? pass.joint->sizes.images : pass.images;
  batch_norm_backward(pass.stream, shape_, pass.images, images, in, grad_out, mean, inverse, weight, totals,
                      slots_.add, grad_in);
}

std::vector<PartialGradient> BatchNormOp::gradients() const {
  if (offsets_.weight < 0) return {};
  return {{gradient_, offsets_.weight, 2 * shape_.channels, 1}};
}

}  // namespace sweep::cuda
