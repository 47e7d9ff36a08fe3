// A small convolution with the relu and the 2×2 max pooling after it.
#pragma once

#include <optional>

#include "core/kernels/cuda/conv_pool.h"
#include "core/kernels/cuda/op.h"
#include "core/kernels/cuda/weight_ops.h"
#include "core/network/network.h"

namespace sweep::cuda {

class ConvPoolOp final : public Op {
 public:
  /// The shape if `conv`, followed by a relu and `pool`, can be one op.
  static std::optional<ConvPoolShape> shape_of(const Layer& conv, const Layer& pool);

  /// `reads_pixels`: `conv` is the network's first layer and reads the batch's bytes itself.
  ConvPoolOp(const Network& network, const Layer& conv, const ConvPoolShape& shape, bool reads_pixels,
             const OpSlots& slots, const OpTimes& times, MemoryPlan& plan);
  void forward(const Pass& pass) const override;
  void backward(const Pass& pass) const override;
  std::vector<PartialGradient> gradients() const override;

 private:
  ConvPoolInput input(const Pass& pass) const;

  ConvPoolShape shape_;
  ParameterPlaces places_;
  bool reads_pixels_;
  int parts_;
  OpSlots slots_;
  Slot partials_, winner_;
};

}  // namespace sweep::cuda
