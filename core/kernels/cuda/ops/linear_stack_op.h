// The fully connected layers at the end of a network together with the loss.
#pragma once

#include <vector>

#include "core/kernels/cuda/kernels/linear.h"
#include "core/kernels/cuda/kernels/linear_stack.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/ops/weight_ops.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// A linear layer and the activation after it, or nullptr.
struct StackedLayers {
  const Layer* linear;
  const Layer* activation;
};

class LinearStackOp {
 public:
  /// Whether `layers`, in their order, can be one on the device that use_device() chose.
  static bool fits(const std::vector<StackedLayers>& layers);

  /// `reads_pixels`: the first layer is the network's first and reads the batch's bytes itself; slots.in gets
  /// them as floats then. slots.grad_out is not used. schedule.forward: the moment of run().
  LinearStackOp(const Network& network, const std::vector<StackedLayers>& layers, bool reads_pixels,
                const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan);

  /// The layers, and the loss unless `loss` is nullptr; in a training pass the gradient of the input, too.
  void run(const Pass& pass, const LossOptions* loss, DeviceTotals* totals) const;
  /// After run() of a training pass; nothing but the optimizer needs what it writes.
  void backward_weights(const Pass& pass) const;
  std::vector<PartialGradient> gradients() const;

 private:
  struct Part {
    ParameterOffsets offsets;
    LinearShape shape;
    Slot out, grad, partials;
  };

  LinearStackShape shape_;
  std::vector<Part> parts_;
  bool reads_pixels_;
  int plane_, gradient_parts_;
  OpSlots slots_;
};

}  // namespace sweep::cuda
