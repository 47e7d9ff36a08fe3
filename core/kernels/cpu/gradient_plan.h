// Assigns memory to the gradients of a network's values during the backward pass.
//
// The gradient of a value is alive from the first op that writes it (the value's last reader, as the backward
// pass runs from the last op to the first) until the op that computed the value has read it. Values whose
// gradients are not alive at the same time share a slot: a chain of layers needs two. A value with several
// readers gets the sum of their gradients: the first one writes, the others add.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
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
///
/// Runs from the last op to the first, like the backward pass. grad_out's slot is freed last: the op reads it
/// while it writes the gradients of its inputs.
inline std::vector<std::size_t> plan_gradients(std::span<PlannedOp> ops) {
  std::vector<bool> needed;
  // False for kNetworkInput and kNoShortcut, which are larger than any index.
  const auto is_needed = [&](std::size_t value) { return value < needed.size() && needed[value]; };
  for (const PlannedOp& op : ops)
    needed.push_back(op.has_parameters || is_needed(op.in) || is_needed(op.shortcut));

  std::vector<std::size_t> slot_floats, free;
  const auto allocate = [&](std::size_t floats) {
    if (free.empty()) {
      slot_floats.push_back(floats);
      return slot_floats.size() - 1;
    }
    const std::size_t slot = free.back();
    free.pop_back();
    slot_floats[slot] = std::max(slot_floats[slot], floats);
    return slot;
  };
  if (needed.back()) ops.back().grad_out = allocate(ops.back().out_floats);
  for (std::size_t i = ops.size(); i-- > 0;) {
    PlannedOp& op = ops[i];
    if (!needed[i] || op.grad_out == kNoSlot) continue;
    const bool is_sum = op.shortcut != kNoShortcut;
    bool is_aliased = false;  // The first input of a sum takes over its slot; the second needs its own.
    const auto edge_to = [&](std::size_t value) -> GradientEdge {
      if (!is_needed(value)) return {};
      std::size_t& slot = ops[value].grad_out;
      if (slot != kNoSlot) return {slot, true};
      slot = is_sum && !std::exchange(is_aliased, true) ? op.grad_out : allocate(ops[value].out_floats);
      return {slot, false};
    };
    op.to_in = edge_to(op.in);
    if (!is_sum) op.grad_in = op.to_in.slot;
    if (op.to_in.adds && !is_sum) {
      op.grad_in = allocate(ops[op.in].out_floats);
      free.push_back(op.grad_in);
    }
    op.to_shortcut = edge_to(op.shortcut);
    if (!is_aliased) free.push_back(op.grad_out);
  }
  return slot_floats;
}

}  // namespace sweep::cpu
