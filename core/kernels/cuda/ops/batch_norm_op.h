// Batch normalisation.
#pragma once

#include "core/kernels/cuda/kernels/batch_norm.h"
#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/ops/library_plans.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"
#include "core/network/network.h"

namespace sweep::cuda {

class BatchNormOp final : public Op {
 public:
  BatchNormOp(const Network& network, const Layer& layer, const OpSlots& slots, const OpSchedule& schedule,
              MemoryPlan& plan, KernelAutotuner& autotuner);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;
  std::size_t sum_bytes(Phase phase) const override;
  void leave_sums(const Pass& pass, Phase phase) const override;
  void join_sums(const Pass& pass, Phase phase) const override;

 private:
  std::vector<LibraryTask> choose_directions(const Layer& layer, const OpSchedule& schedule,
                                             KernelAutotuner& autotuner) const;
  bool trains_by_library(const Pass& pass) const;
  void sum_gradients(const Pass& pass, float* totals) const;

  BatchNormShape shape_;
  ParameterOffsets offsets_;
  std::size_t running_mean_, running_var_;  // offsets in the buffers
  OpSlots slots_;
  LibraryPlans<BatchNormShape> library_;
  Slot mean_, inverse_, forward_scratch_, backward_scratch_, totals_, gradient_;
};

}  // namespace sweep::cuda
