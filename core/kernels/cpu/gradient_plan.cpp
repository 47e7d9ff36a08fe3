#include "core/kernels/cpu/gradient_plan.h"

#include <algorithm>

#include "core/network/network.h"

namespace sweep::cpu {
namespace {

class Planner {
 public:
  explicit Planner(std::span<const PlannedOp> ops) : ops_(ops), slots_(ops.size(), kNoSlot) {
    for (const PlannedOp& op : ops_)
      needed_.push_back(op.has_parameters || is_needed(op.in) || is_needed(op.shortcut));
  }

  GradientPlan plan() {
    plan_.ops.resize(ops_.size());
    if (!needed_.back()) return plan_;
    slots_.back() = allocate_slot(ops_.back().out_floats);
    for (std::size_t i = ops_.size(); i-- > 0;) {
      if (needed_[i] && slots_[i] != kNoSlot) plan_op(i);
    }
    return plan_;
  }

 private:
  // False for kNetworkInput and kNoShortcut, which are larger than any index.
  bool is_needed(std::size_t value) const { return value < needed_.size() && needed_[value]; }

  std::size_t allocate_slot(std::size_t floats) {
    std::size_t slot = plan_.slot_floats.size();
    if (free_.empty()) {
      plan_.slot_floats.push_back(floats);
      return slot;
    }
    slot = free_.back();
    free_.pop_back();
    plan_.slot_floats[slot] = std::max(plan_.slot_floats[slot], floats);
    return slot;
  }

  // Runs from the last op to the first, like the backward pass. grad_out's slot is freed last: the op reads
  // it while it writes the gradients of its inputs.
  void plan_op(std::size_t i) {
    PlannedGradients& planned = plan_.ops[i];
    planned.grad_out = slots_[i];
    bool aliased = false;
    if (is_needed(ops_[i].in)) {
      planned.in = make_edge(i, ops_[i].in, aliased);
      if (planned.in.action == GradientEdge::Action::kAdd && ops_[i].shortcut == kNoShortcut) {
        planned.scratch = allocate_slot(ops_[ops_[i].in].out_floats);
        free_.push_back(planned.scratch);
      }
    }
    if (is_needed(ops_[i].shortcut)) planned.shortcut = make_edge(i, ops_[i].shortcut, aliased);
    if (!aliased) free_.push_back(slots_[i]);
  }

  // `aliased` is set when the first input of a sum takes over the sum's slot; the
  // second input then needs its own.
  GradientEdge make_edge(std::size_t op, std::size_t value, bool& aliased) {
    if (slots_[value] != kNoSlot) return {GradientEdge::Action::kAdd, slots_[value]};
    if (ops_[op].shortcut != kNoShortcut && !aliased) {
      aliased = true;
      slots_[value] = slots_[op];
      return {GradientEdge::Action::kAlias, slots_[value]};
    }
    slots_[value] = allocate_slot(ops_[value].out_floats);
    return {GradientEdge::Action::kWrite, slots_[value]};
  }

  std::span<const PlannedOp> ops_;
  std::vector<bool> needed_;
  std::vector<std::size_t> slots_;  // of each value's gradient, as far as it is written already
  std::vector<std::size_t> free_;
  GradientPlan plan_;
};

}  // namespace

GradientPlan plan_gradients(std::span<const PlannedOp> ops) { return Planner(ops).plan(); }

}  // namespace sweep::cpu
