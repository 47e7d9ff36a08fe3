// One step of a compiled network on one block of 16 images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernels/cpu/simd/block.h"

namespace sweep::cpu {

/// What a pass through the network is for, and which images of the batch the block holds.
struct Pass {
  bool training = false;
  std::uint64_t seed = 0;       // of what is random while training
  std::int64_t step = 0;        // optimizer steps taken before
  std::size_t first_image = 0;  // of the block, in the batch
};

/// Arrays of one block that forward() reads and writes. Sizes in floats: see Op.
struct ForwardBuffers {
  const float* in;
  const float* shortcut;  // the second input of a sum; nullptr for all other ops
  float* saved;
  float* out;
  float* scratch;  // scratch_floats() of working memory, which other ops use as well
};

/// The same for backward().
struct BackwardBuffers {
  const float* in;
  const float* out;
  float* saved;
  float* grad_out;         // may be overwritten
  float* grad_in;          // nullptr if nobody needs it
  float* grad_parameters;  // the op's part of a partial sum; added to
  std::size_t images;      // of the batch in the block, at most kLanes; grad_out of further lanes is zero
  float* scratch;          // as in ForwardBuffers
};

/// A layer, or several fused. "Own layout" is how the op keeps its parameters: any order, padded to whole
/// cache lines. forward() and backward() may run on several threads at once, with different buffers; the rest
/// may not.
class Op {
 public:
  Op(std::size_t in_elements, std::size_t out_elements)
      : in_elements_(in_elements), out_elements_(out_elements) {}
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  /// Elements per image; a block has kLanes times as many floats.
  std::size_t in_elements() const { return in_elements_; }
  std::size_t out_elements() const { return out_elements_; }

  /// Floats of a block's output, and of its gradient: more than the elements where those have another layout
  /// than the dense one. They start as zeros; the gradient's memory is shared with other ops.
  virtual std::size_t out_floats() const { return out_elements_ * kLanes; }
  virtual std::size_t grad_out_floats() const { return out_elements_ * kLanes; }

  /// Floats per block that forward() leaves for backward(), beyond in and out. They start as zeros.
  virtual std::size_t saved_floats() const { return 0; }

  /// Floats of working memory that forward() and backward() want each.
  virtual std::size_t scratch_floats() const { return 0; }

  /// Floats of all parameters in the op's own layout; a multiple of a cache line.
  virtual std::size_t parameter_floats() const { return 0; }

  /// Converts between PyTorch's layout, in an array of the whole network's parameters, and the own layout.
  virtual void import_parameters(std::span<const float> /*network_parameters*/, float* /*parameters*/) const {
  }
  virtual void export_parameters(const float* /*parameters*/, std::span<float> /*network_parameters*/) const {
  }

  /// Called after every change of the parameters: refreshes copies in other layouts.
  virtual void prepare(const float* /*parameters*/) {}

  virtual void forward(const Pass& pass, const float* parameters, const ForwardBuffers& buffers) const = 0;
  virtual void backward(const float* parameters, const BackwardBuffers& buffers) const = 0;

 private:
  std::size_t in_elements_, out_elements_;
};

}  // namespace sweep::cpu
