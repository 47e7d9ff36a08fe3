// One or two small convolutions, each with relu and 2×2 max pooling, as one op.
#pragma once

#include <optional>
#include <vector>

#include "core/kernels/cuda/kernels/conv_pool.h"
#include "core/kernels/cuda/ops/op.h"
#include "core/kernels/cuda/ops/parameter_offsets.h"
#include "core/network/network.h"

namespace sweep::cuda {

/// A convolution, with relu and pooling after it.
struct ConvPoolLayers {
  const Layer* conv;
  ConvPoolShape shape;
};

class ConvPoolOp final : public Op {
 public:
  /// The shape if `conv`, then relu, then `pool` can be one op; nothing otherwise. input_gradient: whether
  /// the gradient of the convolution's input is ever needed.
  static std::optional<ConvPoolShape> shape_of(const Layer& conv, const Layer& pool, bool input_gradient);

  /// Whether `layers` can be one op together; each can be one by itself.
  static bool fits(const std::vector<ConvPoolLayers>& layers, bool input_gradient);

  /// `reads_pixels`: the first convolution is the network's first layer and reads the batch's bytes itself.
  ConvPoolOp(const Network& network, const std::vector<ConvPoolLayers>& layers, bool reads_pixels,
             const OpSlots& slots, const OpSchedule& schedule, MemoryPlan& plan);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  void backward_input(const Pass& pass) const override;
  void backward_weights(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;

  /// Leaves forward() to the next op for passes of up to `images` images; see LinearStackOp::join().
  void leave_forward(int images) { most_left_ = images; }
  const ConvPoolChain& chain() const { return chain_; }
  ConvPoolInput input(const Pass& pass) const;
  std::vector<ConvPoolArrays> arrays(const Pass& pass) const;

 private:
  struct FusedLayer {
    ConvPoolShape shape;
    ParameterOffsets offsets;
    Slot out, argmax, partials;
  };
  void run_backward(const Pass& pass, float* grad_in) const;

  ConvPoolChain chain_;
  bool reads_pixels_;
  int slices_;
  int most_left_ = 0;
  OpSlots slots_;
  std::vector<FusedLayer> fused_;
};

}  // namespace sweep::cuda
