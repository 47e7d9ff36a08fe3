// Ops that compute each output element from one element of each input: activations, dropout, residual sums.
#pragma once

#include "core/kernels/cuda/kernels/elementwise.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/network/network.h"

namespace sweep::cuda {

class ActivationOp final : public Op {
 public:
  ActivationOp(const Layer& layer, const OpSlots& slots);
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
  /// `number`: position among the dropout layers of the network; they draw different random numbers by it.
  DropoutOp(const Layer& layer, std::uint64_t seed, std::uint32_t number, const OpSlots& slots);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;

 private:
  DropoutRule rule_of(const Pass& pass) const;

  DropoutRule rule_;
  int elements_;
  OpSlots slots_;
};

/// The sum of two inputs at the end of a residual block.
class SumOp final : public Op {
 public:
  struct Input {
    Slot value, gradient;  // gradient: empty if nobody needs it
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
