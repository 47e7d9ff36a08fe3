#include "core/kernels/cpu/gradient_plan.h"

#include <algorithm>
#include <utility>

namespace sweep::cpu {

// Runs from the last op to the first, like the backward pass. grad_out's slot is freed last: the op reads it
// while it writes the gradients of its inputs.
std::vector<std::size_t> plan_gradients(std::span<PlannedOp> ops) {
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
