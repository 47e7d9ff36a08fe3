#include "core/kernels/cpu/gradient_plan.h"

#include <algorithm>
#include <utility>

namespace sweep::cpu {

// Runs from the last op to the first, like the backward pass. grad_out's slot is freed last: the op reads it
// while it writes the gradients of its inputs.
GradientPlan plan_gradients(std::span<const PlannedOp> ops) {
  using Action = GradientEdge::Action;
  std::vector<bool> needed;
  // False for kNetworkInput and kNoShortcut, which are larger than any index.
  const auto is_needed = [&](std::size_t value) { return value < needed.size() && needed[value]; };
  for (const PlannedOp& op : ops)
    needed.push_back(op.has_parameters || is_needed(op.in) || is_needed(op.shortcut));

  GradientPlan plan{std::vector<PlannedGradients>(ops.size()), {}};
  std::vector<std::size_t> slots(ops.size(), kNoSlot);  // of each value's gradient, once it is written
  std::vector<std::size_t> free;
  const auto allocate = [&](std::size_t floats) {
    if (free.empty()) {
      plan.slot_floats.push_back(floats);
      return plan.slot_floats.size() - 1;
    }
    const std::size_t slot = free.back();
    free.pop_back();
    plan.slot_floats[slot] = std::max(plan.slot_floats[slot], floats);
    return slot;
  };
  if (needed.back()) slots.back() = allocate(ops.back().out_floats);
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (!needed[i] || slots[i] == kNoSlot) continue;
    PlannedGradients& planned = plan.ops[i];
    planned.grad_out = slots[i];
    const bool is_sum = ops[i].shortcut != kNoShortcut;
    bool is_aliased = false;  // The first input of a sum takes over its slot; the second needs its own.
    const auto edge_to = [&](std::size_t value) -> GradientEdge {
      if (!is_needed(value)) return {};
      if (slots[value] != kNoSlot) return {Action::kAdd, slots[value]};
      const bool aliases = is_sum && !std::exchange(is_aliased, true);
      slots[value] = aliases ? slots[i] : allocate(ops[value].out_floats);
      return {aliases ? Action::kAlias : Action::kWrite, slots[value]};
    };
    planned.in = edge_to(ops[i].in);
    if (planned.in.action == Action::kAdd && !is_sum) {
      planned.scratch = allocate(ops[ops[i].in].out_floats);
      free.push_back(planned.scratch);
    }
    planned.shortcut = edge_to(ops[i].shortcut);
    if (!is_aliased) free.push_back(slots[i]);
  }
  return plan;
}

}  // namespace sweep::cpu
