// torch.nn.BatchNorm2d, with a fused ReLU if one follows. In training its output depends on the whole batch.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/kernels/cpu/kernels/layer_kernels.h"
#include "core/kernels/cpu/ops/op.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// What batch normalization has collected of each block of a batch, `bytes` each, one after the other.
struct BlockSums {
  std::byte* data;
  std::size_t bytes;
};

/// A training pass calls, with barriers between the lines:
///   collect_moments() for every block        (parallel)
///   finish_moments()
///   forward() for every block                (parallel)
///   …
///   collect_sums() for every block           (parallel)
///   finish_sums()
///   backward() for every block               (parallel)
/// The collect functions write sums per block, and the finish functions add those up in the order
/// of blocks, so the bits do not depend on threads. In evaluation there is only forward(), which
/// uses the running statistics.
class BatchNormOp : public Op {
 public:
  /// `layer` is a batch_norm2d of `network`; `relu`: whether a ReLU is fused;
  /// `max_blocks`: the most in a batch.
  BatchNormOp(const Network& network, const Layer& layer, bool relu, std::size_t max_blocks);

  /// Makes forward() write its output in `layout`. Its padding is zero from the start and not written.
  void set_output_layout(const ImageLayout& layout) {
    out_layout_ = layout;
    sizes_.out_floats = layout.floats();
  }
  /// Makes backward() write grad_in in `layout`, borders included, because gradients share memory.
  void set_gradient_layout(const ImageLayout& layout) { gradient_layout_ = layout; }

  std::vector<ParameterRun> parameter_runs() const override;

  /// Copies the running statistics from and to all buffers of the network (Network::buffers()).
  void import_buffers(std::span<const float> network_buffers);
  void export_buffers(std::span<float> network_buffers) const;

  /// Moments of block number `block`; only the first `images` lanes count. in [channels][pixels][16].
  /// Thread-safe for different blocks.
  void collect_moments(std::size_t block, std::size_t images, const float* in);
  /// Computes mean and variance of the batch of `blocks` blocks, and updates the running
  /// statistics unless `keep_running`.
  void finish_moments(std::size_t blocks, bool keep_running);
  void forward(const Pass& pass, const float* parameters, const Buffers& buffers) const override;

  /// Sums over block number `block` that the gradient needs. Also zeroes grad_out where the ReLU's output is
  /// zero. Thread-safe for different blocks.
  void collect_sums(std::size_t block, const Buffers& buffers);
  /// Adds the gradients of weight and bias to grad_parameters, the op's part of one of the partial sums;
  /// nullptr: does not, as another device does.
  void finish_sums(std::size_t blocks, float* grad_parameters);
  void backward(const float* parameters, const Buffers& buffers) const override;

  /// What the collect functions have written, [max_blocks][channels], for devices that share a batch.
  BlockSums moments() { return {bytes_of(block_moments_), channels_ * sizeof(Moments)}; }
  BlockSums sums() { return {bytes_of(block_sums_), channels_ * sizeof(GradientSums)}; }

 private:
  static std::byte* bytes_of(auto& values) { return std::as_writable_bytes(std::span(values)).data(); }
  float weight(const float* parameters, std::size_t channel) const {
    return affine_ ? parameters[channel] : 1.0f;
  }
  float bias(const float* parameters, std::size_t channel) const {
    return affine_ ? parameters[round_up_to_cache_line(channels_) + channel] : 0.0f;
  }

  std::size_t channels_, pixels_;  // pixels: height · width
  ImageLayout out_layout_, gradient_layout_;
  bool affine_, relu_;
  double eps_, momentum_;
  Parameter weight_, bias_, mean_buffer_, variance_buffer_;
  std::vector<float> running_mean_, running_variance_;
  std::vector<Moments> block_moments_;    // [block][channel]
  std::vector<GradientSums> block_sums_;  // [block][channel]
  struct Statistics {                     // of the batch, one channel
    double count = 0, mean = 0, inverse_deviation = 0;
    GradientSums sums;
  };
  std::vector<Statistics> batch_;
};

}  // namespace sweep::cpu
