// Batch normalisation.
#include "core/kernels/cuda/kernels/batch_norm.h"

#include "core/kernels/cuda/ops/layer_ops.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"

namespace sweep::cuda {
namespace {

class BatchNormOp final : public Op {
 public:
  BatchNormOp(const layers::BatchNorm2d& norm, const LayerPlace& place)
      : shape_{size(place.layer.input[0]), size(place.layer.input[1] * place.layer.input[2]),
               static_cast<float>(norm.eps), static_cast<float>(norm.momentum)},
        offsets_(parameter_offsets(place.network, place.layer)),
        running_mean_(static_cast<int>(place.network.buffers()[place.layer.buffers[0]].offset)),
        running_var_(static_cast<int>(place.network.buffers()[place.layer.buffers[1]].offset)),
        slots_(place.slots) {
    const OpSchedule& schedule = place.schedule;
    MemoryPlan& plan = place.plan;
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

  std::size_t sum_bytes(Phase phase) const override {
    const auto channels = static_cast<std::size_t>(shape_.channels);
    if (phase == Phase::kForward) return 2 * channels * sizeof(double);
    return slots_.grad_in ? 2 * channels * sizeof(float) : 0;
  }

  void leave_sums(const Pass& pass, Phase phase) const override {
    if (phase == Phase::kForward) {
      batch_norm_share_statistics(pass.stream, shape_, pass.images, pass.data(slots_.in),
                                  pass.data(forward_scratch_), pass.sums<double>(sum_bytes(phase)));
    } else {
      sum_gradients(pass, pass.sums<float>(sum_bytes(phase)));
    }
  }

  void join_sums(const Pass& pass, Phase phase) const override {
    const JointPass& joint = *pass.joint;
    if (phase == Phase::kForward) {
      batch_norm_join_statistics(pass.stream, shape_, joint.sizes,
                                 reinterpret_cast<const double*>(joint.sums), arrays(pass));
    } else {
      batch_norm_join_gradients(pass.stream, shape_, joint.sizes, reinterpret_cast<const float*>(joint.sums),
                                pass.common_data(totals_));
    }
  }

  void forward(const Pass& pass) const override {
    const float* in = pass.data(slots_.in);
    if (!pass.training) {
      batch_norm_running(pass.stream, shape_, arrays(pass));
    } else if (pass.joint == nullptr) {
      batch_norm_statistics(pass.stream, shape_, pass.images, in, pass.data(forward_scratch_), arrays(pass));
    }
    batch_norm_forward(pass.stream, shape_, pass.images, in, arrays(pass),
                       parameter_at(pass, offsets_.weight), parameter_at(pass, offsets_.bias),
                       pass.data(slots_.out));
  }

  void backward(const Pass& pass) const override {
    float* grad_in = pass.data(slots_.grad_in);
    const bool joint = pass.joint != nullptr && grad_in != nullptr;
    if (!joint) sum_gradients(pass, pass.data(totals_));
    if (grad_in == nullptr) return;
    const std::int64_t images = joint ? pass.joint->sizes.images : pass.images;
    batch_norm_backward(pass.stream, shape_, pass.images, images, pass.data(slots_.in),
                        pass.data(slots_.grad_out), arrays(pass), parameter_at(pass, offsets_.weight),
                        pass.common_data(totals_), slots_.add, grad_in);
  }

  std::vector<PartialGradient> gradients() const override {
    if (offsets_.weight < 0) return {};
    return {{gradient_, offsets_.weight, 2 * shape_.channels, 1}};
  }

 private:
  BatchNormArrays arrays(const Pass& pass) const {
    return {pass.common_data(mean_), pass.common_data(inverse_),
            pass.buffers + (running_mean_ - pass.first_buffer),
            pass.buffers + (running_var_ - pass.first_buffer)};
  }

  // The gradient of the parameters is that of the pass's own samples.
  void sum_gradients(const Pass& pass, float* totals) const {
    batch_norm_sum_gradients(pass.stream, shape_, pass.images, pass.data(slots_.in),
                             pass.data(slots_.grad_out), arrays(pass), pass.data(backward_scratch_), totals,
                             pass.data(gradient_));
  }

  BatchNormShape shape_;
  ParameterOffsets offsets_;
  int running_mean_, running_var_;  // offsets in the buffers
  OpSlots slots_;
  Slot mean_, inverse_, forward_scratch_, backward_scratch_, totals_, gradient_;
};

}  // namespace

std::unique_ptr<Op> make_layer_op(const layers::BatchNorm2d& norm, const LayerPlace& place) {
  return std::make_unique<BatchNormOp>(norm, place);
}

}  // namespace sweep::cuda
