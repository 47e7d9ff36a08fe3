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

/// One op, in topological order. A value is identified by the index of the op that computes it; kNetworkInput
/// is the network's input.
struct PlannedOp {
  std::size_t in;
  std::size_t shortcut = kNoShortcut;  // the second input of a sum
  bool has_parameters = false;
  std::size_t out_floats = 0;  // size of the gradient of its output
};

/// Where the gradient of one of an op's inputs goes.
struct GradientEdge {
  enum class Action {
    kNone,   // not needed: there are no parameters before this op
    kWrite,  // written to `slot`
    kAdd,    // added to what another reader of the value wrote to `slot`
    kAlias,  // the op is a sum, whose input gradient equals its grad_out: `slot` is the slot of grad_out
  } action = Action::kNone;
  std::size_t slot = kNoSlot;
};

struct PlannedGradients {
  std::size_t grad_out = kNoSlot;  // kNoSlot: the op has no backward pass
  // For in.action kAdd of an op that is not a sum: its backward() writes here, and the
  // result is then added to in.slot.
  std::size_t scratch = kNoSlot;
  GradientEdge in, shortcut;
};

struct GradientPlan {
  std::vector<PlannedGradients> ops;
  std::vector<std::size_t> slot_floats;  // size of each slot
};

/// The last op computes the network's output, whose gradient is written to its grad_out
/// slot before the backward pass.
GradientPlan plan_gradients(std::span<const PlannedOp> ops);

}  // namespace sweep::cpu
