#include "core/kernels/cpu/gradient_sum.h"

#include <bit>
#include <random>

#include "core/kernels/cpu/gradient_plan.h"
#include "core/kernels/cpu/partial_shares.h"
#include "core/kernels/cpu/thread_pool.h"
#include "core/network/network.h"
#include "tests/core/kernels/cpu/simd_targets.h"

namespace sweep::cpu::gradient_sum_test {

constexpr std::size_t kFloats = 1040;  // several of add_arrays()'s pieces, the last one short

RankShares shared(std::size_t partials, std::size_t turns, std::size_t devices) {
  RankShares shares;
  share_out(partials, turns, devices, shares);
  return shares;
}

float value(std::size_t part, std::size_t i, std::uint32_t seed) {
  auto bits = static_cast<std::uint32_t>(part * 7919 + i) * 2654435761u + seed * 40503u;
  bits = (bits ^ bits >> 15) * 2246822519u;
  return static_cast<float>(bits >> 8) / 8388608.0f - 1.0f;
}

// Reference: the same binary tree, as a recursion.
float tree_sum(std::size_t first, std::size_t size, std::size_t parts, std::size_t i, std::uint32_t seed) {
  if (size == 1) return value(first, i, seed);
  const float left = tree_sum(first, size / 2, parts, i, seed);
  if (first + size / 2 >= parts) return left;
  return left + tree_sum(first + size / 2, size / 2, parts, i, seed);
}

// What the devices of a group do, one after another: the gathering is a copy.
std::vector<std::vector<float>> sums_of_devices(std::vector<GradientSum>& sums, const RankShares& shares,
                                                ThreadPool& pool, std::uint32_t seed) {
  for (std::size_t device = 0; device < sums.size(); ++device) {
    GradientSum& sum = sums[device];
    sum.begin(shares);
    std::vector<std::size_t> parts;
    for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
      const IndexRange own = range_of(shares, turn, device);
      for (std::size_t part = own.begin; part < own.end; ++part) parts.push_back(part);
    }
    pool.run(parts.size(), [&](std::size_t index, std::size_t) noexcept {
      float* partial = sum.partials() + index * kFloats;
      for (std::size_t i = 0; i < kFloats; ++i) partial[i] = value(parts[index], i, seed);
      sum.finish_partial(index);
    });
    if (sums.size() == 1) continue;
    sum.add_up_share(0, 512);
    sum.add_up_share(512, kFloats - 512);
  }
  std::vector<std::vector<float>> totals;
  for (GradientSum& to : sums) {
    for (std::size_t from = 0; sums.size() > 1 && from < sums.size(); ++from) {
      const SharedArray source = sums[from].share(), target = to.share();
      std::copy(source.data + source.begins[from], source.data + source.begins[from + 1],
                target.data + target.begins[from]);
    }
    AlignedBuffer total(kFloats);
    constexpr std::size_t kHalf = kFloats / 32 * 16;
    to.total(0, kHalf, total.data());
    to.total(kHalf, kFloats - kHalf, total.data() + kHalf);
    totals.emplace_back(total.data(), total.data() + kFloats);
  }
  return totals;
}

void expect_the_tree(std::size_t devices, std::size_t turns, int threads) {
  ThreadPool pool(threads);
  std::vector<GradientSum> sums;
  sums.reserve(devices);
  for (std::size_t rank = 0; rank < devices; ++rank)
    sums.emplace_back(64, kFloats, pool.size(), DevicePlace{rank, devices}, turns);
  std::uint32_t seed = 0;
  // Different numbers of partial sums one after the other, like the batches of an epoch.
  for (const std::size_t parts : {64u, 1u, 2u, 64u, 3u, 7u, 8u, 7u, 16u, 33u, 63u, 8u}) {
    const auto totals = sums_of_devices(sums, shared(parts, turns, devices), pool, ++seed);
    for (std::size_t i = 0; i < kFloats; i += 13) {
      const float expected = tree_sum(0, std::bit_ceil(parts), parts, i, seed);
      for (const std::vector<float>& total : totals)
        ASSERT_EQ(total[i], expected) << devices << " devices, " << turns << " turns, " << threads
                                      << " threads, " << parts << " parts, float " << i;
    }
  }
}

TEST(GradientSum, AddsInTheSameOrderForAnyNumberOfThreadsDevicesAndTurns) {
  test::for_each_simd_target([](const std::string& target) {
    SCOPED_TRACE(target);
    for (const int threads : {1, 2, 3, 5, 8, 13}) expect_the_tree(1, 1, threads);
    for (const std::size_t devices : {1u, 2u, 3u, 4u, 7u}) {
      for (const std::size_t turns : {1u, 2u, 5u}) {
        for (const int threads : {1, 3}) expect_the_tree(devices, turns, threads);
      }
    }
  });
}

TEST(GradientPlan, AChainAlternatesBetweenTwoSlots) {
  std::vector<PlannedOp> ops = {{.in = kNetworkInput, .has_parameters = true, .out_floats = 32},
                                {.in = 0, .out_floats = 64},
                                {.in = 1, .has_parameters = true, .out_floats = 16}};
  EXPECT_EQ(plan_gradients(ops).size(), 2u);
  EXPECT_EQ(ops[2].grad_in, ops[1].grad_out);
  EXPECT_EQ(ops[1].grad_in, ops[0].grad_out);
  EXPECT_EQ(ops[0].grad_in, kNoSlot);
}

TEST(GradientPlan, NoGradientIsComputedBeforeTheFirstParameters) {
  std::vector<PlannedOp> ops = {{.in = kNetworkInput, .out_floats = 32},
                                {.in = 0, .has_parameters = true, .out_floats = 16}};
  plan_gradients(ops);
  EXPECT_EQ(ops[0].grad_out, kNoSlot);
  EXPECT_EQ(ops[1].grad_in, kNoSlot);
}

// Executes a plan with numbers in the slots: op i multiplies by i + 2, and a sum adds. A slot is overwritten
// with garbage once it has been read, so that a slot that is reused too early gives a wrong result.
std::vector<double> gradients_by_plan(const std::vector<PlannedOp>& ops,
                                      const std::vector<std::size_t>& slot_floats) {
  std::vector<double> slots(slot_floats.size(), -1e9), gradients(ops.size());
  slots.at(ops.back().grad_out) = 1;
  for (std::size_t i = ops.size(); i-- > 0;) {
    const PlannedOp& op = ops[i];
    if (op.grad_out == kNoSlot) continue;
    const bool is_sum = op.shortcut != kNoShortcut;
    gradients[i] = slots.at(op.grad_out);
    const double value = gradients[i] * (is_sum ? 1 : static_cast<double>(i + 2));
    if (op.grad_in != kNoSlot) slots.at(op.grad_in) = value;
    bool aliased = false;
    for (const GradientEdge& edge : {op.to_in, op.to_shortcut}) {
      if (edge.slot == kNoSlot) continue;
      EXPECT_GT(slot_floats.at(edge.slot), 0u);
      aliased = aliased || (edge.slot == op.grad_out && !edge.adds);
      slots.at(edge.slot) = value + (edge.adds ? slots.at(edge.slot) : 0);
    }
    if (!aliased) slots.at(op.grad_out) = -1e9;
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
    const std::vector<std::size_t> slots = plan_gradients(ops);
    const std::vector<double> planned = gradients_by_plan(ops, slots),
                              expected = gradients_by_definition(ops);
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

TEST(ShareOut, GivesConsecutiveAndNearlyEqualRanges) {
  for (std::size_t partials = 1; partials <= 64; ++partials) {
    for (std::size_t turns = 1; turns <= 9; ++turns) {
      for (std::size_t devices = 1; devices <= 9; ++devices) {
        const RankShares shares = shared(partials, turns, devices);
        SCOPED_TRACE(std::to_string(partials) + " in " + std::to_string(turns) + " turns on " +
                     std::to_string(devices));
        ASSERT_EQ(shares.turns(), std::min(turns, partials));
        std::size_t next = 0;
        for (std::size_t turn = 0; turn < shares.turns(); ++turn) {
          const IndexRange all = range_of(shares, turn);
          ASSERT_GE(all.size(), partials / turns);
          ASSERT_LE(all.size(), (partials + shares.turns() - 1) / shares.turns());
          for (std::size_t device = 0; device < devices; ++device) {
            const IndexRange range = range_of(shares, turn, device);
            ASSERT_EQ(range.begin, next);
            ASSERT_LE(range.size(), (all.size() + devices - 1) / devices);
            next = range.end;
          }
          ASSERT_EQ(next, all.end);
        }
        ASSERT_EQ(next, partials);
      }
    }
  }
}

TEST(ShareOut, CutsFewSubtrees) {
  EXPECT_THAT(shared(7, 1, 2).begins, ElementsAre(0, 4, 7));
  EXPECT_THAT(shared(64, 1, 4).begins, ElementsAre(0, 16, 32, 48, 64));
  EXPECT_THAT(shared(7, 1, 3).begins, ElementsAre(0, 2, 4, 7));
  EXPECT_THAT(shared(2, 1, 4).begins, ElementsAre(0, 1, 2, 2, 2));
}

}  // namespace sweep::cpu::gradient_sum_test
