// Pooling layers. cuDNN or the built-in kernels do them, as the autotuner decides.
#pragma once

#include "core/kernels/cuda/kernels/pool.h"
#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/ops/library_plans.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

class MaxPoolOp final : public Op {
 public:
  MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan,
            KernelAutotuner& autotuner);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  bool runs_library(int images) const;

  PoolShape shape_;
  OpSlots slots_;
  LibraryPlans<PoolLayer> library_;
  Slot argmax_;
};

class AvgPoolOp final : public Op {
 public:
  AvgPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan,
            KernelAutotuner& autotuner);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  PoolShape shape_;
  Average average_;
  OpSlots slots_;
  LibraryPlans<PoolLayer> library_;
};

}  // namespace sweep::cuda
