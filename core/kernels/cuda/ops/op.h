// One step of a compiled network, over a whole batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/memory_plan.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// A pass through the network with all that its ops need. Everything but the stream is the device's memory.
struct Pass {
  Stream& stream;
  int images = 0;
  bool training = false;
  const StepInput* input = nullptr;
  const std::uint32_t* rows = nullptr;
  const float* parameters = nullptr;
  float* buffers = nullptr;  // running statistics
  Normalisation normalisation = {};
  const MemoryPlan& plan;
  std::byte* memory = nullptr;

  template <class T = float>
  T* at(Slot slot) const {
    return slot ? reinterpret_cast<T*>(memory + plan.offset(slot)) : nullptr;
  }
};

/// The arrays that an op of one input reads and writes.
struct OpSlots {
  Slot in, out;
  Slot grad_out;     // may be overwritten by backward()
  Slot grad_in;      // none if nobody needs it
  bool add = false;  // whether grad_in holds another op's share already, to be added to
};

/// Where an op leaves the gradients of parameters offset … offset + count − 1: `parts` arrays of `count`
/// floats.
struct PartialGradient {
  Slot slot;
  int offset, count, parts;
};

/// A layer, or several fused. Ops put work on the pass's stream and keep nothing between calls, so that the
/// work can be recorded in a graph.
class Op {
 public:
  Op() = default;
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  /// Has to come before the first pass of so many images, outside of a recording.
  virtual void prepare(int /*images*/) {}
  virtual void forward(const Pass& pass) const = 0;
  /// After forward() of a training pass.
  virtual void backward(const Pass& pass) const = 0;
  virtual std::vector<PartialGradient> gradients() const { return {}; }
};

/// When the op's forward() and backward() take place, and how large batches are: for what it asks of a
/// MemoryPlan.
struct OpTimes {
  int forward, backward, end;  // end: after the optimizer's step
  int images;
};

}  // namespace sweep::cuda
