// One node of a compiled network: what it needs from a pass, which memory it uses, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/share_sizes.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/memory_plan.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// What the passes over the shares of a batch have in common, where ops look at all shares, which several
/// devices may compute: an op leaves sums of each, all devices get those of all, and join them. Every pointer
/// is device memory.
struct JointPass {
  std::byte* sums = nullptr;    // [sizes.count][Op::sum_bytes()]
  std::byte* memory = nullptr;  // Pass::memory of the first share here, for what all have in common
  ShareSizes sizes = {};
};

/// One pass over a batch, or a share of it. Every pointer is device memory.
struct Pass {
  Stream& stream;
  int images = 0;         // at most the batch size that the network was compiled for
  bool training = false;  // whether backward() and the optimizer follow
  int first_image = 0;    // place of the first sample in the batch; a pass may have only a share of it
  int first_row = 0;      // where the first sample is in the arrays that have a row per sample
  const StepInput* input = nullptr;
  const std::uint32_t* rows = nullptr;  // [images]: row of each sample and its target in `input`
  const float* parameters = nullptr;    // layout of Network::parameters(), from first_parameter on
  float* buffers = nullptr;             // running statistics, layout of Network::buffers(), from first_buffer
  int first_parameter = 0, first_buffer = 0;
  Normalisation normalisation = {};
  const MemoryPlan& plan;
  std::byte* memory = nullptr;  // the block that `plan` lays out
  // Set if other training passes have other shares of the batch; nullptr: this pass has all that ops look at.
  const JointPass* joint = nullptr;
  int share = 0;

  /// The array that the plan has put into `slot`, from row first_row on if it has rows; nullptr for an empty
  /// slot.
  template <class T = float>
  T* data(Slot slot) const {
    if (!slot) return nullptr;
    return reinterpret_cast<T*>(memory + plan.offset(slot) +
                                static_cast<std::size_t>(first_row) * plan.row_bytes(slot));
  }
  /// The same of the array that all shares of a joint pass use.
  template <class T = float>
  T* common_data(Slot slot) const {
    return slot ? reinterpret_cast<T*>((joint != nullptr ? joint->memory : memory) + plan.offset(slot))
                : nullptr;
  }
  /// What the share `share` leaves for the others.
  template <class T>
  T* sums(std::size_t bytes) const {
    return reinterpret_cast<T*>(joint->sums + static_cast<std::size_t>(share) * bytes);
  }
};

/// The activations and gradients of an op with one input. Arrays are [images][elements of the layer].
struct OpSlots {
  Slot in, out;
  Slot grad_out;     // backward() may overwrite it
  Slot grad_in;      // empty if nothing upstream has parameters
  bool add = false;  // another consumer of `in` has written grad_in before: add to it
};

/// Where an op leaves the gradients of parameters offset … offset + count − 1: `slices` arrays of `count`
/// floats, which the optimizer adds up in order. Layers sum over the batch in slices because one block per
/// weight would leave most of the GPU idle, and float atomics would make the order of the sum, and so its
/// bits, a matter of luck.
struct PartialGradient {
  Slot slot;
  int offset, count, slices;
};

enum class Phase { kForward, kBackward };

/// A layer, or several fused. Ops only put work on the pass's stream and keep no state between calls, because
/// a pass is captured once in a graph and then replayed: anything an op decided on the host would be frozen.
class Op {
 public:
  Op() = default;
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  /// Called before the first pass over as many samples as `pass` has, outside of a capture, when nothing in
  /// the pass's memory is needed any more: libraries may choose algorithms, load kernels and allocate here,
  /// which a capture forbids. What it computes is of no use.
  virtual void prepare(const Pass& /*pass*/) {}
  virtual void forward(const Pass& pass) const = 0;
  /// After forward() of a training pass.
  virtual void backward(const Pass& pass) const = 0;
  /// backward() for samples that come in micro-batches: the gradient of the input of each, then those of the
  /// weights, for all of them at once, so that their sums are those of backward().
  virtual void backward_input(const Pass& pass) const { backward(pass); }
  virtual void backward_weights(const Pass& /*pass*/) const {}
  virtual std::vector<PartialGradient> gradients() const { return {}; }

  /// For a pass with `joint`: bytes that the op needs of each share before forward() or backward(); mostly 0.
  virtual std::size_t sum_bytes(Phase /*phase*/) const { return 0; }
  /// Leaves the sums of a share that has images.
  virtual void leave_sums(const Pass& /*pass*/, Phase /*phase*/) const {}
  /// Once on each device when all sums are there, with the pass of some share of it, of any size.
  virtual void join_sums(const Pass& /*pass*/, Phase /*phase*/) const {}
};

/// When an op runs, in the moments of a step that MemoryPlan counts in (see Compiler in compiler.cpp), and
/// for how large batches: an op asks the plan for memory by it.
struct OpSchedule {
  int forward, backward;  // moments of forward() and backward()
  int end;                // after the optimizer, the last reader of gradients
  int images;             // largest batch
  bool joint = false;     // whether training passes have Pass::joint
};

}  // namespace sweep::cuda
