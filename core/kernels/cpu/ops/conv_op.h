// conv2d, with a fused ReLU and 2×2 max pooling if they follow.
#pragma once

#include <optional>

#include "core/kernels/cpu/kernels/conv_kernels.h"
#include "core/kernels/cpu/kernels/winograd/winograd.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// A convolution uses one of these algorithms. The choice depends on its geometry alone, not on the
/// machine or on measurements, so a training has the same algorithms everywhere:
///
///   without pooling: Winograd in all three directions if use_winograd(), else the direct kernels
///   with pooling, forward: Winograd along rows if use_winograd_rows(), else the direct kernels
///   with pooling, backward: conv_pool_backward(), which exploits that most of the gradient is zero
///
/// Each group of channels is a convolution of its own; groups run one after the other. The input is copied
/// into zero padding, unless the op before it writes it padded (accept_padded_input()).
class ConvOp : public Op {
 public:
  struct Fusion {
    bool relu = false;
    bool pool = false;          // 2×2 max pooling with stride 2 after the ReLU; see can_pool()
    bool needs_grad_in = true;  // false for the network's first layer
  };

  /// Whether pooling can be fused into this conv2d: not if it has dilation or groups.
  static bool can_pool(const Layer& layer);

  /// `layer` is a conv2d of `network`.
  ConvOp(const Network& network, const Layer& layer, Fusion fusion);

  /// Returns the layout in which the op reads its input, or the gradient of its output, and from then on
  /// expects it in that layout instead of copying it. Returns nothing, and changes nothing, if there is no
  /// such copy to save: an input without padding; a gradient that has to be changed on the way, by pooling,
  /// ReLU or gaps. To be called before the first forward().
  std::optional<ImageLayout> accept_padded_input();
  std::optional<ImageLayout> accept_padded_gradient();

  std::vector<ParameterRun> parameter_runs() const override;
  void prepare(const float* parameters) override;
  void forward(const Pass& pass, const float* parameters, const Buffers& buffers) const override;
  void backward(const float* parameters, const Buffers& buffers) const override;

 private:
  /// Floats of one group's weights.
  std::size_t weight_floats() const { return weight_.count / groups_; }
  bool padded() const { return geometry_.pad_y + geometry_.pad_x > 0; }
  /// Assigns offsets in `saved`: the padded input, the argmax of pooling, and the
  /// working memory of backward().
  void assign_offsets();
  /// The input with its zero padding: a copy in `saved`, or `in` itself if there is no
  /// padding or it has it already.
  const float* padded_input(const Buffers& buffers) const {
    return padded() && !input_is_padded_ ? buffers.saved : buffers.in;
  }

  ConvGeometry geometry_{};  // of one group, padding included
  std::size_t groups_ = 1;
  Fusion fusion_;
  bool winograd_ = false, winograd_rows_ = false;  // winograd_rows_: with pooling, forward only
  bool input_is_padded_ = false, gradient_is_padded_ = false;
  Parameter weight_, bias_;      // bias_.count is 0 if there is none
  std::size_t bias_offset_ = 0;  // parameters: weights [out][ky][kx][in], then bias
  ConvGradient gradient_layout_{};
  std::size_t argmax_offset_ = 0, gradient_offset_ = 0;  // in `saved`
  std::size_t packed_floats_ = 0;                        // of one group's packed_ and packed_transposed_
  AlignedBuffer packed_, packed_transposed_;
  std::optional<ConvPoolPlan> pool_plan_;  // with pooling
};

}  // namespace sweep::cpu
