// Bits that depend on neither the number of threads nor, beyond rounding, on the instruction set.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/engine/engine_for.h"
#include "tests/core/kernels/cpu/simd_targets.h"

namespace sweep {
namespace {

using test::Outcome;
using test::train_three_steps;

class AnyThreads : public testing::TestWithParam<std::size_t> {};

void expect_same_bits(const Outcome& one, const Outcome& several) {
  EXPECT_EQ(one.parameters, several.parameters);
  EXPECT_EQ(one.gradients, several.gradients);
  EXPECT_EQ(one.totals.loss, several.totals.loss);
  EXPECT_EQ(one.totals.correct, several.totals.correct);
}

TEST_P(AnyThreads, GiveTheSameBits) {
  SKIP_UNLESS_CPU();
  const Outcome one = train_three_steps(GetParam(), 1);
  for (const int threads : {2, 3, 4, 5, 6, 7, 8}) {
    SCOPED_TRACE(threads);
    expect_same_bits(one, train_three_steps(GetParam(), threads));
  }
}

TEST(Engine, ThreadsGiveTheSameBitsWithWideConvolutions) {
  SKIP_UNLESS_CPU();
  const Network network(test::wide_convolutions(), {1, 12, 15});
  const Outcome one = train_three_steps(133, 1, network);
  for (const int threads : {2, 3, 7}) {
    SCOPED_TRACE(threads);
    expect_same_bits(one, train_three_steps(133, threads, network));
  }
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, AnyThreads, testing::Values(1, 15, 16, 17, 100, 333, 1100));

// Wider vectors add in another order, and only some instruction sets fuse multiplications with additions, so
// bits may differ; three steps of Adam with lr 0.01 move a weight by up to 0.03, and where a gradient is
// nearly 0 its sign decides the way.
TEST(Engine, InstructionSetsAgreeWithinRounding) {
  SKIP_UNLESS_CPU();
  std::vector<std::pair<std::string, Outcome>> outcomes;
  test::for_each_simd_target(
      [&](const std::string& target) { outcomes.emplace_back(target, train_three_steps(100, 1)); });
  for (const auto& [target, outcome] : outcomes) {
    SCOPED_TRACE(target);
    EXPECT_NEAR(outcome.totals.loss, outcomes[0].second.totals.loss, 1e-4 * outcomes[0].second.totals.loss);
    double difference = 0;
    for (std::size_t i = 0; i < outcome.parameters.size(); ++i) {
      difference += std::abs(outcome.parameters[i] - outcomes[0].second.parameters[i]);
    }
    EXPECT_LT(difference / static_cast<double>(outcome.parameters.size()), 1e-4);
  }
  EXPECT_GE(outcomes.size(), 1u);
}

}  // namespace
}  // namespace sweep
