// Nondeterministic library kernels: chosen only if EngineOptions::deterministic is false, and told apart from
// the others wherever bits matter. The stand-in libraries add up forward or backward at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/engine/engine.h"
#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "tests/cudart/library_limits.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

constexpr LinearShape kWide{64, 4096, true};
constexpr LibraryTask kForward{.direction = Direction::kForward, .images = 64};

class Nondeterminism : public testing::Test {
 protected:
  ~Nondeterminism() override { cudart::set_library_limits({}); }
};

TEST_F(Nondeterminism, IsChosenOnlyIfAllowedAndIsRecorded) {
  KernelRule strict(0, true, KernelPolicy::kByShape), loose(0, false, KernelPolicy::kByShape);
  const auto ordered = strict.choose(kWide, {kForward}).tasks, any = loose.choose(kWide, {kForward}).tasks;
  ASSERT_EQ(ordered.size(), 1u);
  ASSERT_EQ(any.size(), 1u);
  EXPECT_TRUE(ordered[0].deterministic);
  EXPECT_FALSE(any[0].deterministic);
  EXPECT_TRUE(gives_same_bits(strict.used().record(0)));
  EXPECT_FALSE(gives_same_bits(loose.used().record(0)));
}

TEST_F(Nondeterminism, IsNotRecordedIfTheLibraryIsDeterministic) {
  cudart::set_library_limits({.has_any_order = false});
  KernelRule loose(0, false, KernelPolicy::kByShape);
  const auto chosen = loose.choose(kWide, {kForward}).tasks;
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_TRUE(chosen[0].deterministic);
  EXPECT_EQ(loose.used().record(0).find("same_bits"), std::string::npos);
}

struct Trained {
  std::vector<float> parameters;
  std::string kernels;
};

Trained trained(const std::string& device, bool deterministic) {
  const test::Environment policy("SWEEP_CUDA_KERNELS", "library");
  const Network network({"n",
                         {test::conv("conv", 5, 3),
                          {"leaky", "leaky_relu", {}},
                          test::flatten("flatten"),
                          test::linear("fc1", 40),
                          test::relu("relu"),
                          test::linear("out", 10)}},
                        {1, 7, 7});
  const auto engine = make_engine(
      network, {.device = parse_device(device), .batch_size = 20, .deterministic = deterministic});
  engine->set_parameters(initial_parameters(network, 3));
  for (std::uint64_t step = 0; step < 8; ++step)
    engine->train(test::random_batch(step % 3 == 0 ? 7 : 20, 49, 10, step).view(), 0.1);
  return {engine->parameters(), engine->kernels()};
}

TEST_F(Nondeterminism, ChangesTheLastBitsOfATrainingAndSaysSo) {
  const Trained strict = trained("cuda", true), again = trained("cuda", true);
  EXPECT_EQ(strict.parameters, again.parameters);
  EXPECT_TRUE(gives_same_bits(strict.kernels));
  const Trained loose = trained("cuda", false), other = trained("cuda", false);
  EXPECT_NE(loose.parameters, other.parameters);
  EXPECT_FALSE(gives_same_bits(loose.kernels)) << loose.kernels;
  EXPECT_EQ(loose.kernels, other.kernels);
  ASSERT_EQ(loose.parameters.size(), strict.parameters.size());
  for (std::size_t i = 0; i < loose.parameters.size(); ++i)
    EXPECT_NEAR(loose.parameters[i], strict.parameters[i], 1e-4) << i;
}

TEST_F(Nondeterminism, ChangesNoBitIfNoKernelUsesIt) {
  cudart::set_library_limits({.has_any_order = false});
  const Trained strict = trained("cuda", true), loose = trained("cuda", false);
  EXPECT_EQ(strict.parameters, loose.parameters);
  EXPECT_EQ(strict.kernels, loose.kernels);
}

TEST_F(Nondeterminism, DoesNotConcernTheCpu) {
  EXPECT_EQ(trained("cpu", true).parameters, trained("cpu", false).parameters);
  EXPECT_TRUE(gives_same_bits(trained("cpu", false).kernels));
}

TEST(GivesSameBits, UnlessTheKernelsSayOtherwise) {
  for (const char* kernels :
       {"", "own", "nonsense", "{", "{}", "[]", R"({"layers": {}})", R"({"same_bits": true})"})
    EXPECT_TRUE(gives_same_bits(kernels)) << kernels;
  EXPECT_FALSE(gives_same_bits(R"({"layers": {"fc": ["forward"]}, "same_bits": false})"));
}

}  // namespace
}  // namespace sweep::cuda
