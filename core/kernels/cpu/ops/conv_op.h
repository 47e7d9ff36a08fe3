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
///
/// If a block has few images, the kernels would work for many of their 16 lanes in vain. The images' planes
/// are cut into patches then, which the kernels take for small images; all sums are the same.
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

  /// Calls the kernel for images, or patches of images, with this geometry.
  void run_forward(const ConvGeometry& g, const float* in, const float* packed, const float* bias, float* out,
                   float* argmax, float* scratch) const;
  void run_backward_input(const ConvGeometry& g, const ConvGradient& gradient, const float* packed,
                          float* grad_in, float* scratch) const;
  std::size_t kernel_scratch_floats() const;

  /// Up to how many images a block is cut into patches.
  static constexpr std::size_t kFewImages = kLanes / 2;
  /// Up to how many images conv_backward_weights_of_few() is faster: its vectors are along the output
  /// channels.
  std::size_t few_images() const {
    return kFewImages * geometry_.out_channels / round_up_to_cache_line(geometry_.out_channels);
  }
  struct Patches;
  std::optional<Patches> patches_of(std::size_t images, std::size_t height, std::size_t width,
                                    std::size_t unit_y, std::size_t unit_x) const;
  std::optional<Patches> out_patches(std::size_t images) const;
  std::optional<Patches> in_patches(std::size_t images) const;
  /// As the functions above, for patches of a block's images. Return false, and do nothing, if that saves
  /// too little. Their scratch memory comes after kernel_scratch_floats().
  bool forward_patches(std::size_t images, const float* in, const float* packed, const float* bias,
                       float* out, float* argmax, float* scratch) const;
  bool backward_patches(std::size_t images, const ConvGradient& gradient, const float* packed, float* grad_in,
                        float* scratch) const;
  std::size_t patch_scratch_floats() const;

  ConvGeometry geometry_{};                // of one group, padding included
  std::size_t reach_y_ = 0, reach_x_ = 0;  // from the first to the last tap of the kernel
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
