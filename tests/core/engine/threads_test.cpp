// Bits that depend on neither the number of threads nor, beyond rounding, on the instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>

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

// FNV-1a of the values' bits.
std::uint64_t fingerprint(const std::vector<float>& values) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const float value : values) {
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (std::bit_cast<std::uint32_t>(value) >> shift & 0xFF)) * 0x100000001B3;
  }
  return hash;
}

NetworkSpec mlp_with(const std::string& activation) {
  NetworkSpec spec = test::mlp();
  spec.layers[2] = {activation, activation, {}};
  return spec;
}

// The same on every processor whose instructions fuse multiplication and addition. `trained`: weights after
// three steps; not where gradients are sums over the lanes of a vector, which are in another order if it is
// wider.
struct FixedBits {
  NetworkSpec network;
  Shape input;
  OptimizerOptions optimizer;
  std::uint64_t outputs;
  std::optional<std::uint64_t> trained;
};

SgdOptions nesterov() {
  SgdOptions sgd;
  sgd.momentum = 0.9, sgd.weight_decay = 0.01, sgd.nesterov = true;
  return sgd;
}

RmspropOptions centered() {
  RmspropOptions rmsprop;
  rmsprop.centered = true, rmsprop.momentum = 0.5;
  return rmsprop;
}

TEST(Engine, InstructionSetsThatFuseGiveTheSameBits) {
  SKIP_UNLESS_CPU();
  const Shape pictures{1, 28, 28};
  const FixedBits references[] = {
      {test::mlp(), pictures, AdamOptions{}, 0x3A34C2FFDDCF5F05, 0x3EFB1C9507C791BE},
      {test::mlp(), pictures, nesterov(), 0x3A34C2FFDDCF5F05, 0xA5960AF5FD682F73},
      {test::mlp(), pictures, centered(), 0x3A34C2FFDDCF5F05, 0x2A6FFB499CDBEFA6},
      {test::with_dropout(test::mlp()), pictures, AdamOptions{}, 0x3A34C2FFDDCF5F05, 0xD2DB9612B251E433},
      {mlp_with("tanh"), pictures, AdamOptions{}, 0x7A91990DB24A3B48, 0x867B0A2A1AAC8482},
      {mlp_with("sigmoid"), pictures, AdamOptions{}, 0xC91A1FA7551AE0D7, 0x7D8BB0B856F2AA7D},
      {mlp_with("gelu"), pictures, AdamOptions{}, 0xEAC9A4B0138EAA63, 0xFED29CA229A07B3C},
      {test::deeplizard(), pictures, AdamOptions{}, 0x4E3846F7DB6736A8, std::nullopt},
      {test::small_residual(), {3, 16, 16}, AdamOptions{}, 0x019D7BE88999003A, std::nullopt},
      {test::wide_convolutions(), {1, 12, 15}, AdamOptions{}, 0x3F8DCD64BFB5E40D, std::nullopt},
  };
  test::for_each_simd_target([&](const std::string& target) {
    if (target != "AVX3" && target != "AVX2" && target != "NEON") return;
    for (const FixedBits& reference : references) {
      SCOPED_TRACE(target + " " + reference.network.name + " " + reference.network.layers[2].type);
      const Network network(reference.network, reference.input);
      const auto engine = test::engine_for(network, 100, 1, reference.optimizer);
      const test::OwnedBatch batch = test::random_batch(100, element_count(network.input()), 10, 11);
      std::vector<float> outputs(1000);
      engine->predict(batch.view(), outputs);
      EXPECT_EQ(fingerprint(outputs), reference.outputs);
      for (int step = 0; step < 3; ++step) engine->train(batch.view(), 0.01);
      EXPECT_EQ(fingerprint(engine->parameters()),
                reference.trained.value_or(fingerprint(engine->parameters())));
    }
  });
}

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
