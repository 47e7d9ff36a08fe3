// Convolutions and linear layers: alike except for the shape and its kernels.
#pragma once

#include "core/kernels/cuda/kernels/conv.h"
#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "core/kernels/cuda/ops/library_plans.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// Shape: ConvShape or LinearShape. With `relu`, a relu follows, fused into the kernels.
template <class Shape>
class WeightOp final : public Op {
 public:
  WeightOp(const Network& network, const Layer& layer, bool relu, const OpSlots& slots,
           const OpSchedule& schedule, MemoryPlan& plan, KernelRule& rule);
  void prepare(const Pass& pass) override;
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  void backward_input(const Pass& pass) const override;
  void backward_weights(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;

 private:
  void relu_backward(const Pass& pass) const;
  void write_input_gradient(const Pass& pass) const;

  Shape shape_;
  ParameterOffsets offsets_;
  bool relu_;
  int outputs_;  // floats of one image
  OpSlots slots_;
  LibraryPlans<Shape> library_;
  int slices_;
  Slot partials_;
};

using ConvOp = WeightOp<ConvShape>;
using LinearOp = WeightOp<LinearShape>;

}  // namespace sweep::cuda
