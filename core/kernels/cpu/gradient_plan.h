// Assigns memory to the gradients of a network's values during the backward pass.
//
// The gradient of a value is alive from the first op that writes it (the value's last reader, as the backward
// pass runs from the last op to the first) until the op that computed the value has read it. Values whose
// gradients are not alive at the same time share a slot: a chain of layers needs two. A value with several
// readers gets the sum of their gradients: the first one writes, the others add.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sweep::cpu {

inline constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
inline constexpr std::size_t kNoShortcut = static_cast<std::size_t>(-2);

/// Where the gradient of one of an op's inputs goes: nowhere, because there are no parameters before this op;
/// or to `slot`, which it `adds` to, if another reader of the value wrote to it before.
struct GradientEdge {
  std::size_t slot = kNoSlot;
  bool adds = false;
};

/// One op, in topological order. A value is identified by the index of the op that computes it; kNetworkInput
/// is the network's input.
struct PlannedOp {
  std::size_t in;
  std::size_t shortcut = kNoShortcut;  // the second input of a sum
  bool has_parameters = false;
  std::size_t out_floats = 0;  // size of the gradient of its output

  // What plan_gradients() sets.
  std::size_t grad_out = kNoSlot;  // kNoSlot: the op has no backward pass
  // Where backward() writes the gradient of its input: the slot of `to_in`, or another one if that is added
  // to. A sum writes none: its input gradients equal its grad_out, whose slot one of the edges may have.
  std::size_t grad_in = kNoSlot;
  GradientEdge to_in = {}, to_shortcut = {};
};

/// The last op computes the network's output, whose gradient is written to its grad_out slot before the
/// backward pass. Returns the size of each slot.
std::vector<std::size_t> plan_gradients(std::span<PlannedOp> ops);

}  // namespace sweep::cpu
