// Pooling layers that are not fused into a convolution.
#pragma once

#include "core/kernels/cpu/kernels/pool_kernels.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

class MaxPoolOp : public Op {
 public:
  explicit MaxPoolOp(const Layer& layer);
  std::size_t saved_floats() const override { return out_elements() * kLanes; }  // the argmax of each window
  void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const override;
  void backward(const float* parameters, const BackwardBuffers& buffers) const override;

 private:
  PoolGeometry geometry_;
};

/// avg_pool2d and adaptive_avg_pool2d.
class AvgPoolOp : public Op {
 public:
  explicit AvgPoolOp(const Layer& layer);
  void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const override;
  void backward(const float* parameters, const BackwardBuffers& buffers) const override;

 private:
  PoolGeometry geometry_;
  Average average_;
};

}  // namespace sweep::cpu
