// Pooling layers.
#pragma once

#include "core/kernels/cuda/kernels/pool.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

class MaxPoolOp final : public Op {
 public:
  MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  PoolShape shape_;
  OpSlots slots_;
  Slot argmax_;
};

class AvgPoolOp final : public Op {
 public:
  AvgPoolOp(const Layer& layer, const OpSlots& slots);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  PoolShape shape_;
  bool with_padding_;
  OpSlots slots_;
};

}  // namespace sweep::cuda
