// The interface of ops, the steps of a compiled network. An op works on one block of 16 images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/cpu/simd/block.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// A pass of blocks through the network.
struct Pass {
  bool training = false;
  std::uint64_t seed = 0;  // EngineOptions::seed, for dropout
  std::int64_t step = 0;   // optimizer steps taken so far, for dropout
};

/// The arrays of a block that an op reads and writes, all aligned to cache lines. OpSizes has their sizes.
struct Buffers {
  const float* in;        // [in_elements][16], or the padded layout that a ConvOp asked for
  const float* shortcut;  // the second input of a sum; nullptr for all other ops
  float* saved;           // from forward() to the block's backward()
  float* out;
  float* scratch;  // undefined at first, and other ops overwrite it
  // The operands of backward(): in, out and saved are as forward() left them.
  float* grad_out;          // may be overwritten
  float* grad_in;           // written; nullptr if it is not needed
  float* grad_parameters;   // of a partial sum; added to, unless it is_first and OpSizes::begins_sum
  std::size_t first_image;  // position of the block's first image in the batch, for dropout
  std::size_t images;       // 1 … kLanes: lanes beyond are not in the batch, and their grad_out is zero
  bool is_first;            // of the blocks of the partial sum
};

/// Where `count` parameters of the network, from `network` on, are in an op's own layout: from `own` on.
struct ParameterRun {
  std::size_t network, own, count;
  std::size_t network_step = 1, own_step = 1;  // from one to the next
};

/// The sizes of an op's arrays.
struct OpSizes {
  OpSizes(std::size_t in, std::size_t out)
      : in_elements(in), out_elements(out), out_floats(out * kLanes), grad_out_floats(out * kLanes) {}

  /// Values of one image in the input and in the output; a block has kLanes times as many floats.
  std::size_t in_elements, out_elements;
  /// Floats of a block's output and of its gradient. More than out_elements · kLanes if the layout has
  /// padding, which is zero from the start. The gradient's memory is shared with other ops, so its padding
  /// has to be written every time.
  std::size_t out_floats, grad_out_floats;
  /// Floats per block that forward() saves for backward(), besides in and out. Zero at first,
  /// and never used by other ops.
  std::size_t saved_floats = 0;
  /// Floats of scratch memory that forward() and backward() each need.
  std::size_t scratch_floats = 0;
  /// Floats of the op's parameters in its own layout; a multiple of a cache line.
  std::size_t parameter_floats = 0;
  /// Whether backward() overwrites grad_parameters for the first block, so that nobody has to clear them.
  bool begins_sum = false;
};

/// One layer, or several fused. Each op has its own layout of parameters: any order,
/// padded to whole cache lines.
///
/// Life of an op: its parameters are set, prepare(), then forward() and backward() for the blocks of a batch,
/// prepare() again after the optimizer's step, and so on. forward() and backward() are const and may run on
/// several threads at once with different buffers; all other functions must run alone.
class Op {
 public:
  explicit Op(const OpSizes& sizes) : sizes_(sizes) {}
  explicit Op(const Layer& layer) : sizes_(element_count(layer.input), element_count(layer.output)) {}
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  const OpSizes& sizes() const { return sizes_; }

  /// The places of all its parameters in those of the network, in PyTorch's layout (Network::parameters()),
  /// and in the op's own. Gradients and optimizer state have the same layouts.
  virtual std::vector<ParameterRun> parameter_runs() const { return {}; }

  /// Refreshes what the op derives from its parameters, such as packed weights. To be
  /// called after every change of them.
  virtual void prepare(const float* /*parameters*/) {}

  /// `parameters` are the op's own.
  virtual void forward(const Pass& pass, const float* parameters, const Buffers& buffers) const = 0;
  virtual void backward(const float* parameters, const Buffers& buffers) const = 0;

  /// The same for several blocks, one after the other, whose grad_parameters are the same; with the same
  /// bits. Up to kMaxBlocksAtOnce.
  virtual void forward_all(const Pass& pass, const float* parameters, std::span<const Buffers> blocks) const {
    for (const Buffers& block : blocks) forward(pass, parameters, block);
  }
  virtual void backward_all(const float* parameters, std::span<const Buffers> blocks) const {
    for (const Buffers& block : blocks) backward(parameters, block);
  }

 protected:
  OpSizes sizes_;
};

}  // namespace sweep::cpu
