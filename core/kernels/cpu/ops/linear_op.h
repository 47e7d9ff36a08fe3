// linear, with a fused ReLU if one follows.
#pragma once

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// bf16 rounds the factors of the output and of the input's gradient, unless their sums have only one term.
/// Gradients of weights are always fp32.
class LinearOp : public Op {
 public:
  /// `layer` is a linear layer of `network`; `relu`: whether a ReLU is fused; `bf16` is nullptr for fp32.
  LinearOp(const Network& network, const Layer& layer, bool relu, const Bf16Kernels* bf16);

  std::size_t parameter_floats() const override { return bias_offset_ + bias_floats_; }
  void import_parameters(std::span<const float> network_parameters, float* parameters) const override;
  void export_parameters(const float* parameters, std::span<float> network_parameters) const override;
  std::size_t scratch_floats() const override;
  void prepare(const float* parameters) override;
  void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const override;
  void backward(const float* parameters, const BackwardBuffers& buffers) const override;

 private:
  bool relu_;
  Parameter weight_, bias_;                           // bias_.count is 0 if there is none
  std::size_t bias_offset_ = 0, bias_floats_ = 0;     // parameters: weight panels, then bias
  const Bf16Kernels *forward_bf16_, *backward_bf16_;  // nullptr: fp32
  AlignedBuffer input_pairs_, output_pairs_;          // bf16 weight panels: pairs of inputs, pairs of outputs
};

}  // namespace sweep::cpu
