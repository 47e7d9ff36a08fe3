// Trainings with the stand-in libraries, against the built-in kernels and the CPU; fallbacks.
// Nondeterministic kernels: chosen only if EngineOptions::deterministic is false, and told apart from the
// others wherever bits matter.

#include "core/engine/engine.h"
#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "tests/cudart/library_limits.h"
#include "tests/support/batch.h"
#include "tests/support/test_networks.h"

#include "tests/support/test.h"

namespace sweep::cuda::library_training_test {

class LibraryTraining : public testing::Test {
 protected:
  ~LibraryTraining() override { cudart::set_library_limits({}); }
};
using Nondeterminism = LibraryTraining;

NetworkSpec some_network(std::int64_t hidden = 12) {
  return {"n",
          {test::conv("conv", 5, 3),
           {"leaky", "leaky_relu", {}},
           test::flatten("flatten"),
           test::linear("fc1", hidden),
           test::relu("relu"),
           test::linear("out", 10)}};
}

struct Trained {
  std::vector<float> parameters;
  std::string kernels;
};

// 8 steps, some with batches of 3 instead of 5. The stand-in libraries find a plan that runs for the first
// time in a capture.
struct Choice {
  std::string device = "cuda";
  bool deterministic = true;
};
Trained trained(const Network& network, const std::string& policy, const Choice& choice = {}) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", policy.c_str());
  const auto engine = make_engine(
      network,
      {.device = parse_device(choice.device), .batch_size = 5, .deterministic = choice.deterministic});
  engine->set_parameters(initial_parameters(network, 3));
  for (std::uint64_t step = 0; step < 8; ++step)
    engine->train(test::random_batch(step % 3 == 0 ? 3 : 5, 49, 10, step).view(), 0.1);
  return {engine->parameters(), engine->kernels()};
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST_F(LibraryTraining, AgreesWithBuiltInKernelsAndTheCpu) {
  const Network network(some_network(), {1, 7, 7});
  const Trained cpu = trained(network, "", {.device = "cpu"}), builtin = trained(network, "builtin"),
                library = trained(network, "library");
  EXPECT_EQ(cpu.kernels, "");
  EXPECT_EQ(builtin.kernels, "builtin");
  EXPECT_THAT(library.kernels, StartsWith("cuBLASLt stand-in for every layer, cuDNN stand-in for every "
                                          "layer on "));
  expect_close(builtin.parameters, cpu.parameters);
  expect_close(library.parameters, cpu.parameters);
  EXPECT_NE(library.parameters, builtin.parameters) << "both used the same kernels";
}

TEST_F(LibraryTraining, FallsBackIfALibraryHasNoAlgorithm) {
  const Network network(some_network(), {1, 7, 7});
  const Trained builtin = trained(network, "builtin");
  for (const cudart::LibraryLimits& limits :
       {cudart::LibraryLimits{.has_input_gradients = false}, cudart::LibraryLimits{.fewest_images = 4}}) {
    cudart::set_library_limits(limits);
    const Trained some = trained(network, "library");
    EXPECT_NE(some.kernels, "builtin");
    expect_close(some.parameters, builtin.parameters);
  }
}

TEST_F(LibraryTraining, EndsIfALibraryRefusesWhatItHasPlanned) {
  const Network network(some_network(), {1, 7, 7});
  cudart::set_library_limits({.refuses = true});
  EXPECT_THROW(trained(network, "library"), DeviceError);
  EXPECT_EQ(trained(network, "builtin").kernels, "builtin");
}

TEST_F(LibraryTraining, OpensEachLibraryOncePerProcessAndDevice) {
  cudart::set_library_limits({});
  const int before = cudart::libraries_opened();
  const Network network(some_network(), {1, 7, 7});
  for (int engine = 0; engine < 3; ++engine) trained(network, "library");
  EXPECT_EQ(cudart::libraries_opened(), before + 2);
  cudart::set_library_limits({.installed = false});
  EXPECT_EQ(trained(network, "library").kernels, "builtin");
}

TEST_F(LibraryTraining, OpensNoLibraryOfConvolutionsForALinearLayer) {
  cudart::set_library_limits({});
  const int before = cudart::libraries_opened();
  const Network network({"n", {test::flatten("flatten"), test::linear("out", 10)}}, {1, 7, 7});
  EXPECT_THAT(trained(network, "library").kernels, Not(HasSubstr("cuDNN")));
  EXPECT_EQ(cudart::libraries_opened(), before + 1);
}

// The stand-in libraries add up forward or backward at random.
constexpr LinearShape kWide{64, 4096, true};
constexpr LibraryTask kForward{.direction = Direction::kForward, .images = 64};

Network wide() { return {some_network(40), {1, 7, 7}}; }

TEST_F(Nondeterminism, IsChosenOnlyIfAllowedAndIsRecorded) {
  for (const bool allowed : {false, true}) {
    for (const bool offered : {false, true}) {
      cudart::set_library_limits({.has_any_order = offered});
      KernelRule rule(0, !allowed, KernelPolicy::kByShape);
      const auto chosen = rule.choose(kWide, {kForward}).tasks;
      ASSERT_EQ(chosen.size(), 1u);
      EXPECT_EQ(chosen[0].deterministic, !(allowed && offered));
      EXPECT_EQ(is_deterministic(kernels_text(rule.used(), 0)), !(allowed && offered));
    }
  }
}

TEST_F(Nondeterminism, ChangesTheLastBitsOfATrainingAndSaysSo) {
  const Trained strict = trained(wide(), "library", {.deterministic = true}),
                again = trained(wide(), "library", {.deterministic = true});
  EXPECT_EQ(strict.parameters, again.parameters);
  EXPECT_TRUE(is_deterministic(strict.kernels));
  const Trained loose = trained(wide(), "library", {.deterministic = false}),
                other = trained(wide(), "library", {.deterministic = false});
  EXPECT_NE(loose.parameters, other.parameters);
  EXPECT_FALSE(is_deterministic(loose.kernels)) << loose.kernels;
  EXPECT_EQ(loose.kernels, other.kernels);
  expect_close(loose.parameters, strict.parameters);
}

TEST_F(Nondeterminism, ChangesNoBitIfNoKernelUsesIt) {
  cudart::set_library_limits({.has_any_order = false});
  for (const char* device : {"cuda", "cpu"}) {
    const Trained strict = trained(wide(), "library", {.device = device, .deterministic = true}),
                  loose = trained(wide(), "library", {.device = device, .deterministic = false});
    EXPECT_EQ(strict.parameters, loose.parameters) << device;
    EXPECT_EQ(strict.kernels, loose.kernels) << device;
    EXPECT_TRUE(is_deterministic(loose.kernels)) << device;
  }
}

}  // namespace sweep::cuda::library_training_test
