// The interface of ops, the steps of a compiled network. An op works on one block of 16 images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/cpu/simd/block.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// A pass of a block through the network.
struct Pass {
  bool training = false;
  std::uint64_t seed = 0;       // EngineOptions::seed, for dropout
  std::int64_t step = 0;        // optimizer steps taken so far, for dropout
  std::size_t first_image = 0;  // position of the block's first image in the batch, for dropout
};

/// The arrays of a block that forward() reads and writes, all aligned to cache lines. Op has their sizes.
struct ForwardBuffers {
  const float* in;        // [in_elements][16], or the padded layout that a ConvOp asked for
  const float* shortcut;  // the second input of a sum; nullptr for all other ops
  float* saved;           // [saved_floats]: kept until the block's backward()
  float* out;             // [out_floats]
  float* scratch;         // [scratch_floats]: undefined at first, and other ops overwrite it
};

/// The arrays of backward(). in, out and saved are as forward() left them.
struct BackwardBuffers {
  const float* in;
  const float* out;
  float* saved;
  float* grad_out;         // [grad_out_floats]; may be overwritten
  float* grad_in;          // written; nullptr if it is not needed
  float* grad_parameters;  // [parameter_floats] of a partial sum; added to
  std::size_t images;      // 1 … kLanes: lanes beyond are not in the batch, and their grad_out is zero
  float* scratch;          // as in ForwardBuffers
};

/// Where `count` parameters of the network, from `network` on, are in an op's own layout: from `own` on.
struct ParameterRun {
  std::size_t network, own, count;
  std::size_t network_step = 1, own_step = 1;  // from one to the next
};

/// One layer, or several fused. Each op has its own layout of parameters: any order,
/// padded to whole cache lines.
///
/// Life of an op: its parameters are set, prepare(), then forward() and backward() for the blocks of a batch,
/// prepare() again after the optimizer's step, and so on. forward() and backward() are const and may run on
/// several threads at once with different buffers; all other functions must run alone.
class Op {
 public:
  Op(std::size_t in_elements, std::size_t out_elements)
      : in_elements_(in_elements), out_elements_(out_elements) {}
  explicit Op(const Layer& layer) : Op(element_count(layer.input), element_count(layer.output)) {}
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  /// Values of one image in the input and in the output; a block has kLanes times as many floats.
  std::size_t in_elements() const { return in_elements_; }
  std::size_t out_elements() const { return out_elements_; }

  /// Floats of a block's output and of its gradient. More than out_elements() · kLanes if the layout has
  /// padding, which is zero from the start. The gradient's memory is shared with other ops, so its padding
  /// has to be written every time.
  virtual std::size_t out_floats() const { return out_elements_ * kLanes; }
  virtual std::size_t grad_out_floats() const { return out_elements_ * kLanes; }

  /// Floats per block that forward() saves for backward(), besides in and out. Zero at first,
  /// and never used by other ops.
  virtual std::size_t saved_floats() const { return 0; }

  /// Floats of scratch memory that forward() and backward() each need.
  virtual std::size_t scratch_floats() const { return 0; }

  /// Floats of the op's parameters in its own layout; a multiple of a cache line.
  virtual std::size_t parameter_floats() const { return 0; }

  /// The places of all its parameters in those of the network, in PyTorch's layout (Network::parameters()),
  /// and in the op's own. Gradients and optimizer state have the same layouts.
  virtual std::vector<ParameterRun> parameter_runs() const { return {}; }

  /// Refreshes what the op derives from its parameters, such as packed weights. To be
  /// called after every change of them.
  virtual void prepare(const float* /*parameters*/) {}

  /// `parameters` are the op's own, [parameter_floats].
  virtual void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const = 0;
  virtual void backward(const float* parameters, const BackwardBuffers& buffers) const = 0;

 private:
  std::size_t in_elements_, out_elements_;
};

}  // namespace sweep::cpu
