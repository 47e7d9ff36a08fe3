// Max pooling and ReLU that are not fused into another op.
#pragma once

#include "core/kernels/cpu/op.h"
#include "core/kernels/cpu/pool_kernels.h"
#include "core/network/network.h"

namespace sweep::cpu {

class MaxPoolOp : public Op {
 public:
  explicit MaxPoolOp(const Layer& layer);
  std::size_t saved_floats() const override { return out_elements() * kLanes; }  // the winners
  void forward(const float* own, const float* in, float* saved, float* out) const override;
  void backward(const float* own, const BackwardBuffers& buffers) const override;

 private:
  PoolGeometry geometry_{};
};

class ReluOp : public Op {
 public:
  explicit ReluOp(const Layer& layer) : Op(element_count(layer.input), element_count(layer.output)) {}
  void forward(const float* own, const float* in, float* saved, float* out) const override;
  void backward(const float* own, const BackwardBuffers& buffers) const override;
};

}  // namespace sweep::cpu
