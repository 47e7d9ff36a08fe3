// Bits that do not depend on the instruction set, or by rounding only.

#include <bit>

#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/training.h"

namespace sweep::instruction_sets_test {

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

// So many weights that blocks of samples go through the layers together. The gradient of the second layer's
// inputs is summed in several turns, for tiles of 16, 4 and 1 of them.
NetworkSpec wide_mlp() {
  return {"wide-mlp",
          {test::flatten("flatten"), test::linear("fc1", 517), test::relu("relu1"), test::linear("fc2", 550),
           test::linear("out", 10)}};
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

TEST(Engine, InstructionSetsThatFuseGiveTheSameBits) {
  SKIP_UNLESS_CPU();
  const Shape pictures{1, 28, 28};
  const SgdOptions nesterov{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  const RmspropOptions centered{.momentum = 0.5, .centered = true};
  const FixedBits references[] = {
      {test::mlp(), pictures, AdamOptions{}, 0x3A34C2FFDDCF5F05, 0x3EFB1C9507C791BE},
      {test::mlp(), pictures, nesterov, 0x3A34C2FFDDCF5F05, 0xA5960AF5FD682F73},
      {test::mlp(), pictures, centered, 0x3A34C2FFDDCF5F05, 0x2A6FFB499CDBEFA6},
      {test::with_dropout(test::mlp()), pictures, AdamOptions{}, 0x3A34C2FFDDCF5F05, 0xD2DB9612B251E433},
      {mlp_with("tanh"), pictures, AdamOptions{}, 0x7A91990DB24A3B48, 0x867B0A2A1AAC8482},
      {mlp_with("sigmoid"), pictures, AdamOptions{}, 0xC91A1FA7551AE0D7, 0x7D8BB0B856F2AA7D},
      {mlp_with("gelu"), pictures, AdamOptions{}, 0xEAC9A4B0138EAA63, 0xFED29CA229A07B3C},
      {wide_mlp(), pictures, AdamOptions{}, 0x13FBF07599613E12, 0x06F100A271CEC37B},
      {test::deeplizard(), pictures, AdamOptions{}, 0x4E3846F7DB6736A8, std::nullopt},
      {test::small_residual(), {3, 16, 16}, AdamOptions{}, 0x019D7BE88999003A, std::nullopt},
      {test::wide_convolutions(), {1, 12, 15}, AdamOptions{}, 0x3F8DCD64BFB5E40D, std::nullopt},
  };
  test::for_each_simd_target([&](const std::string& target) {
    if (target != "AVX3" && target != "AVX2" && target != "NEON") return;
    for (const FixedBits& reference : references) {
      SCOPED_TRACE(target + " " + reference.network.name + " " + reference.network.layers[2].type);
      const Network network(reference.network, reference.input);
      const auto engine =
          test::engine_for(network, {.threads = 1, .batch_size = 100, .optimizer = reference.optimizer});
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
  const test::Training training{
      test::deeplizard(), {1, 28, 28}, test::options_with(AdamOptions{}), {100, 100, 100}};
  std::vector<test::EngineOutcome> outcomes;
  test::for_each_simd_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    outcomes.push_back(test::train(training, test::Way{}));
    const auto &found = outcomes.back(), &first = outcomes.front();
    EXPECT_NEAR(found.trained.loss / first.trained.loss, 1, 1e-4);
    double difference = 0;
    for (std::size_t i = 0; i < found.parameters.size(); ++i)
      difference += std::abs(found.parameters[i] - first.parameters[i]);
    EXPECT_LT(difference / static_cast<double>(found.parameters.size()), 1e-4);
  });
}

}  // namespace sweep::instruction_sets_test
