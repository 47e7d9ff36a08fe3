// linear, with a fused ReLU if one follows.
#pragma once

#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

class LinearOp : public Op {
 public:
  /// `layer` is a linear layer of `network`; `relu`: whether a ReLU is fused.
  LinearOp(const Network& network, const Layer& layer, bool relu);

  std::size_t parameter_floats() const override { return bias_offset_ + bias_floats_; }
  void import_parameters(std::span<const float> network_parameters, float* parameters) const override;
  void export_parameters(const float* parameters, std::span<float> network_parameters) const override;
  void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const override;
  void backward(const float* parameters, const BackwardBuffers& buffers) const override;

 private:
  bool relu_;
  Parameter weight_, bias_;                        // bias_.count is 0 if there is none
  std::size_t bias_offset_ = 0, bias_floats_ = 0;  // parameters: weight panels, then bias
};

}  // namespace sweep::cpu
