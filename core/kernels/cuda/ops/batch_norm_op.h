// Batch normalisation.
#pragma once

#include "core/kernels/cuda/kernels/batch_norm.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"
#include "core/network/network.h"

namespace sweep::cuda {

class BatchNormOp final : public Op {
 public:
  BatchNormOp(const Network& network, const Layer& layer, const OpSlots& slots, const OpSchedule& schedule,
              MemoryPlan& plan);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;
  std::size_t sum_bytes(Phase phase) const override;
  void leave_sums(const Pass& pass, Phase phase) const override;
  void join_sums(const Pass& pass, Phase phase) const override;

 private:
  void sum_gradients(const Pass& pass, float* totals) const;

  BatchNormShape shape_;
  ParameterOffsets offsets_;
  int running_mean_, running_var_;  // offsets in the buffers
  OpSlots slots_;
  Slot mean_, inverse_, forward_scratch_, backward_scratch_, totals_, gradient_;
};

}  // namespace sweep::cuda
