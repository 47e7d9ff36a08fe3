// conv2d, fused with a following ReLU and 2×2 max pooling where there are such.
#pragma once

#include <optional>

#include "core/kernels/cpu/kernels/bf16/bf16_kernels.h"
#include "core/kernels/cpu/kernels/bf16_pairs.h"
#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/kernels/conv_pool_backward.h"
#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "core/kernels/cpu/kernels/winograd/winograd_rows.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// With bf16, factors of the output and of the input's gradient are rounded, but not
///   - where a group has one channel to sum over: half of each pair would be empty;
///   - in the input's gradient with pooling, whose sums leave out what pooling made zero
///   (conv_pool_backward.h).
class ConvOp : public Op {
 public:
  struct Fusion {
    bool relu = false;
    bool pool = false;          // max pooling 2×2 with stride 2 behind the ReLU; see can_pool()
    bool needs_grad_in = true;  // false for the network's first layer
  };

  /// Whether pooling can be fused into this conv2d: not with dilation or groups.
  static bool can_pool(const Layer& layer);

  /// `layer` is a conv2d of `network`; `bf16` is nullptr for fp32.
  ConvOp(const Network& network, const Layer& layer, Fusion fusion, const Bf16Kernels* bf16);

  /// From now on the input comes with its padding, and the output's gradient spread: as the returned layouts
  /// say. Empty where the op has no such layout: without padding, and with pooling, ReLU or gaps.
  std::optional<ImageLayout> accept_padded_input();
  std::optional<ImageLayout> accept_padded_gradient();

  std::size_t grad_out_floats() const override;
  std::size_t saved_floats() const override;
  std::size_t parameter_floats() const override { return bias_offset_ + bias_floats_; }
  void import_parameters(std::span<const float> network_parameters, float* parameters) const override;
  void export_parameters(const float* parameters, std::span<float> network_parameters) const override;
  std::size_t scratch_floats() const override;
  void prepare(const float* parameters) override;
  void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const override;
  void backward(const float* parameters, const BackwardBuffers& buffers) const override;

 private:
  /// With pooling the input's gradient takes the weights as they are.
  bool uses_packed_transposed() const { return fusion_.needs_grad_in && !fusion_.pool; }
  /// Floats of one group's weights, and of packed_ and packed_transposed_ for one.
  std::size_t weight_floats() const { return weight_.count / groups_; }
  std::size_t packed_floats() const;
  /// Brings one group's weights to the layouts of the kernels at work.
  void pack(std::size_t group, const float* weights);
  bool padded() const { return pad_y_ + pad_x_ > 0; }
  /// One group's output; `input` is that of all groups, padded.
  void forward_group(std::size_t group, const float* parameters, const float* input,
                     const ForwardBuffers& buffers) const;
  void backward_input(std::size_t group, const ConvGradient& gradient, const BackwardBuffers& buffers) const;
  void backward_parameters(std::size_t group, const float* input, const ConvGradient& gradient,
                           const BackwardBuffers& buffers) const;
  /// Weights of one group as pairs.
  std::size_t forward_pair_floats() const {
    return pair_count(geometry_.in_channels) * geometry_.taps() * geometry_.out_channels;
  }
  std::size_t backward_pair_floats() const {
    return pair_count(geometry_.out_channels) * geometry_.taps() * geometry_.in_channels;
  }
  /// Decides where things lie in `saved`.
  void assign_offsets();
  const float* bias_of(const float* parameters) const {
    return bias_floats_ > 0 ? parameters + bias_offset_ : nullptr;
  }
  /// `in` with its zero border, from `saved`, or `in` itself where there is no padding.
  const float* padded_input(const float* in, const float* saved) const {
    return padded() && !input_is_padded_ ? saved : in;
  }

  ConvGeometry geometry_{};  // of one group
  std::size_t groups_ = 1;
  Fusion fusion_;
  bool winograd_ = false, winograd_rows_ = false;  // with pooling, forward only: winograd_rows_
  bool input_is_padded_ = false, gradient_is_padded_ = false;
  std::size_t height_, width_, pad_y_, pad_x_;     // of the input without padding
  Parameter weight_, bias_;                        // bias_.count is 0 if there is none
  std::size_t bias_offset_ = 0, bias_floats_ = 0;  // own layout: weights [out][ky][kx][in], then bias
  ConvGradient gradient_layout_{};
  std::size_t argmax_offset_ = 0, gradient_offset_ = 0, saved_floats_ = 0;
  AlignedBuffer packed_, packed_transposed_;
  const Bf16Kernels *forward_bf16_ = nullptr, *backward_bf16_ = nullptr;  // nullptr: fp32
  AlignedBuffer pairs_, pairs_transposed_;                                // the packed weights as pairs
  std::optional<ConvPoolPlan> pool_plan_;                                 // with pooling
};

}  // namespace sweep::cpu
