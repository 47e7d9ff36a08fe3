// The fully connected layers at the end of a network, fused with the loss.
#pragma once

#include <vector>

#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/linear_stack.h"
#include "core/kernels/cuda/ops/conv_pool_op.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// A linear layer and the activation after it, or nullptr.
struct StackedLayers {
  const Layer* linear;
  const Layer* activation;
};

class LinearStackOp final : public Op {
 public:
  /// Whether one kernel can do `layers` on the current device.
  static bool fits(const std::vector<StackedLayers>& layers);
  /// Slices of the weight gradients of `layers`, for batches of up to `images`. Layers that several devices
  /// have between them are given those of all together.
  static int gradient_slices(const std::vector<StackedLayers>& layers, int images);

  /// `reads_pixels`: the first layer is the network's first and reads the batch's bytes itself; in training
  /// it also writes them to slots.in as floats, for backward_weights(). slots.grad_out is empty if the loss
  /// follows; then run() is used instead of forward() and backward_input(), and at schedule.forward.
  LinearStackOp(const Network& network, const std::vector<StackedLayers>& layers, int gradient_slices,
                bool reads_pixels, const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan);

  /// Computes `convolutions`, whose output the layers read and nobody else, in the same kernel: in run(), for
  /// batches that are small enough. They outlive this op, and leave that to it.
  void join(ConvPoolOp& convolutions);

  /// The layers, and the loss unless `loss` is nullptr; in a training pass also the gradients of all
  /// activations.
  void run(const Pass& pass, const LossParameters* loss, Totals* totals) const;
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  void backward_input(const Pass& pass) const override;
  /// The weight gradients, after run() of a training pass. Only the optimizer reads them.
  void backward_weights(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;
  /// What backward_weights() computes, layer by layer in the order of gradients(), and in how many slices.
  std::vector<LinearGradient> weight_gradients(const Pass& pass) const;
  int gradient_slices() const { return slices_; }

 private:
  struct FusedLayer {
    ParameterOffsets offsets;
    LinearShape shape;
    Slot out, grad, partials;
  };

  LinearStackArrays arrays(const Pass& pass) const;
  LinearStackPass stack_pass(const Pass& pass, const LossParameters* loss, bool backward,
                             Totals* totals) const;
  void launch(const Pass& pass, const LossParameters* loss, bool backward, Totals* totals) const;

  LinearStackShape shape_;
  std::vector<FusedLayer> fused_;
  bool reads_pixels_;
  int plane_, slices_;
  OpSlots slots_;
  const ConvPoolOp* convolutions_ = nullptr;  // that join() was called for
};

}  // namespace sweep::cuda
