// Activation functions that are not fused into another op, dropout, and the sum of a residual.
#pragma once

#include <cstdint>

#include "core/kernels/cpu/kernels/activation_kernels.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

class ActivationOp : public Op {
 public:
  explicit ActivationOp(const Layer& layer);
  void forward(const Pass& pass, const float* own, const ForwardBuffers& buffers) const override;
  void backward(const float* own, const BackwardBuffers& buffers) const override;

 private:
  layers::Activated activated_;
};

/// torch.nn.Dropout: while training, zeroes each element with probability p and scales the others by 1 / (1 −
/// p). Which ones depends on (seed, layer, step, image in the batch, element) alone.
class DropoutOp : public Op {
 public:
  /// `number` tells the dropout layers of a network apart.
  DropoutOp(const Layer& layer, std::uint32_t number);
  std::size_t saved_floats() const override { return out_elements() * kLanes; }  // the factors
  void forward(const Pass& pass, const float* own, const ForwardBuffers& buffers) const override;
  void backward(const float* own, const BackwardBuffers& buffers) const override;

 private:
  std::uint32_t number_;
  double probability_;
};

/// The sum of two values, with a following ReLU if there is one. backward() leaves in grad_out what is the
/// gradient of both.
class SumOp : public Op {
 public:
  SumOp(const Layer& layer, bool relu);
  void forward(const Pass& pass, const float* own, const ForwardBuffers& buffers) const override;
  void backward(const float* own, const BackwardBuffers& buffers) const override;

 private:
  bool relu_;
};

}  // namespace sweep::cpu
