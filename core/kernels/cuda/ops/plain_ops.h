// Ops without parameters.
#pragma once

#include "core/kernels/cuda/kernels/elementwise.h"
#include "core/kernels/cuda/kernels/pool.h"
#include "core/kernels/cuda/libraries/kernel_chooser.h"
#include "core/kernels/cuda/ops/library_share.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

class ActivationOp final : public Op {
 public:
  ActivationOp(const Layer& layer, Activation activation, const OpSlots& slots);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  Activation activation_;
  float coefficient_;
  int elements_;
  OpSlots slots_;
};

class DropoutOp final : public Op {
 public:
  /// `number` tells the dropout layers of a network apart, in their order.
  DropoutOp(const Layer& layer, std::uint64_t seed, std::uint32_t number, const OpSlots& slots);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  DropoutRule rule_;
  int elements_;
  OpSlots slots_;
};

class MaxPoolOp final : public Op {
 public:
  MaxPoolOp(const Layer& layer, const OpSlots& slots, const OpTimes& times, MemoryPlan& plan,
            KernelChooser& chooser);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  bool is_library(int images) const;

  PoolShape shape_;
  OpSlots slots_;
  LibraryShare<PoolLayer> library_;
  Slot winner_;
};

class AvgPoolOp final : public Op {
 public:
  AvgPoolOp(const Layer& layer, const OpSlots& slots, const OpTimes& times, MemoryPlan& plan,
            KernelChooser& chooser);
  void prepare(int images) override { library_.prepare(images); }
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  PoolShape shape_;
  Average average_;
  OpSlots slots_;
  LibraryShare<PoolLayer> library_;
};

/// The sum at the end of a residual block.
class SumOp final : public Op {
 public:
  struct Input {
    Slot value, gradient;  // no gradient if nobody needs it
    bool add;              // as OpSlots::add
  };
  SumOp(const Layer& layer, Input first, Input second, Slot out, Slot grad_out);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  int elements_;
  Input inputs_[2];
  Slot out_, grad_out_;
};

}  // namespace sweep::cuda
