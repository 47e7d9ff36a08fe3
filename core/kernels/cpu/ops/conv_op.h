// conv2d, with a fused ReLU and 2×2 max pooling if they follow.
#pragma once

#include <array>
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
///
/// If a block has one image, the direct kernels would work for 16 lanes in vain. Its planes are cut into 16
/// patches then, which they take for small images; all sums are the same.
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

  /// 16 parts of an image's planes, `columns` next to each other, of height × width pixels each.
  struct Patches {
    std::size_t columns, height, width;
    void join(const float* from, const std::array<std::size_t, 3>& planes, std::size_t lanes,
              float* to) const;
  };
  static Patches patches_of(const ConvGeometry& g, std::size_t height, std::size_t width, std::size_t step_y,
                            std::size_t step_x);
  void plan_patches();
  void forward_patches(const float* in, const float* packed, const float* bias, float* scratch,
                       float* out) const;
  void backward_patches(const ConvGradient& gradient, const float* packed, float* scratch,
                        float* grad_in) const;

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
  // For a block with one image: patches of the output, and of the input's gradient, each with the geometry
  // of a small image.
  bool has_patches_ = false;
  Patches out_patches_{}, in_patches_{};
  ConvGeometry out_patch_{}, in_patch_{};
  ConvGradient patch_gradient_{};
  AlignedBuffer packed_, packed_transposed_;
  std::optional<ConvPoolPlan> pool_plan_;  // with pooling
};

}  // namespace sweep::cpu
