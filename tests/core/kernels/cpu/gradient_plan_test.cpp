#include "core/kernels/cpu/gradient_plan.h"

#include <random>

#include "core/network/network.h"
#include "tests/support/test.h"

namespace sweep::cpu::gradient_plan_test {

using Action = GradientEdge::Action;

TEST(GradientPlan, AChainAlternatesBetweenTwoSlots) {
  const std::vector<PlannedOp> ops = {{.in = kNetworkInput, .has_parameters = true, .out_floats = 32},
                                      {.in = 0, .out_floats = 64},
                                      {.in = 1, .has_parameters = true, .out_floats = 16}};
  const GradientPlan plan = plan_gradients(ops);
  EXPECT_EQ(plan.slot_floats.size(), 2u);
  EXPECT_EQ(plan.ops[2].in.slot, plan.ops[1].grad_out);
  EXPECT_EQ(plan.ops[1].in.slot, plan.ops[0].grad_out);
  EXPECT_EQ(plan.ops[0].in.action, Action::kNone);
}

TEST(GradientPlan, NoGradientIsComputedBeforeTheFirstParameters) {
  const std::vector<PlannedOp> ops = {{.in = kNetworkInput, .out_floats = 32},
                                      {.in = 0, .has_parameters = true, .out_floats = 16}};
  const GradientPlan plan = plan_gradients(ops);
  EXPECT_EQ(plan.ops[0].grad_out, kNoSlot);
  EXPECT_EQ(plan.ops[1].in.action, Action::kNone);
}

// Executes a plan with numbers in the slots: op i multiplies by i + 2, and a sum adds. A slot is overwritten
// with garbage once it has been read, so that a slot that is reused too early gives a wrong result.
std::vector<double> gradients_by_plan(const std::vector<PlannedOp>& ops, const GradientPlan& plan) {
  std::vector<double> slots(plan.slot_floats.size(), -1e9), gradients(ops.size());
  slots.at(plan.ops.back().grad_out) = 1;
  for (std::size_t i = ops.size(); i-- > 0;) {
    const PlannedGradients& p = plan.ops[i];
    if (p.grad_out == kNoSlot) continue;
    const bool is_sum = ops[i].shortcut != kNoShortcut;
    gradients[i] = slots.at(p.grad_out);
    bool aliased = false;
    for (const GradientEdge& edge : {p.in, p.shortcut}) {
      const double value = gradients[i] * (is_sum ? 1 : static_cast<double>(i + 2));
      if (edge.action == Action::kWrite) slots.at(edge.slot) = value;
      if (edge.action == Action::kAdd) {
        if (!is_sum) slots.at(p.scratch) = -1e9;
        slots.at(edge.slot) += value;
      }
      if (edge.action == Action::kAlias) {
        EXPECT_EQ(edge.slot, p.grad_out);
        aliased = true;
      }
      EXPECT_TRUE(edge.action == Action::kNone || plan.slot_floats.at(edge.slot) > 0);
    }
    if (!aliased) slots.at(p.grad_out) = -1e9;
  }
  return gradients;
}

std::vector<double> gradients_by_definition(const std::vector<PlannedOp>& ops) {
  std::vector<double> gradients(ops.size());
  gradients.back() = 1;
  for (std::size_t i = ops.size(); i-- > 0;) {
    const bool is_sum = ops[i].shortcut != kNoShortcut;
    const double value = gradients[i] * (is_sum ? 1 : static_cast<double>(i + 2));
    if (ops[i].in < i) gradients[ops[i].in] += value;
    if (ops[i].shortcut < i) gradients[ops[i].shortcut] += value;
  }
  return gradients;
}

TEST(GradientPlan, RandomGraphsGetCorrectGradients) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<PlannedOp> ops;
    const std::size_t count = 1 + random() % 12;
    for (std::size_t i = 0; i < count; ++i) {
      PlannedOp op{.in = i == 0 ? kNetworkInput : i - 1, .has_parameters = true, .out_floats = 16};
      if (i > 0 && random() % 3 == 0) op.shortcut = random() % i;
      if (i > 1 && random() % 4 == 0) op.in = random() % i;
      ops.push_back(op);
    }
    const GradientPlan plan = plan_gradients(ops);
    const std::vector<double> planned = gradients_by_plan(ops, plan), expected = gradients_by_definition(ops);
    std::vector<bool> used(count, false);  // An op whose output is not read gets no gradient.
    used.back() = true;
    for (std::size_t i = count; i-- > 0;) {
      if (!used[i]) continue;
      EXPECT_EQ(planned[i], expected[i]) << "op " << i << " of " << count << " in round " << round;
      if (ops[i].in < i) used[ops[i].in] = true;
      if (ops[i].shortcut < i) used[ops[i].shortcut] = true;
    }
  }
}

}  // namespace sweep::cpu::gradient_plan_test
