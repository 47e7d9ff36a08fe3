// Trainings with the stand-in libraries, against the built-in kernels and the CPU; fallbacks.
// Nondeterministic kernels: chosen only if EngineOptions::deterministic is false, and told apart from the
// others wherever bits matter.

#include "core/engine/engine.h"
#include "core/kernels/cuda/libraries/kernel_rule.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/cudart/machine.h"
#include "tests/support/training.h"

namespace sweep::cuda::library_training_test {

class LibraryTraining : public testing::Test {
 protected:
  ~LibraryTraining() override { cudart::set_library_limits({}); }
};
using Nondeterminism = LibraryTraining;
using KernelRuleTest = LibraryTraining;

NetworkSpec some_network(std::int64_t hidden = 12) {
  return {"n",
          {test::conv("conv", 5, 3),
           {"leaky", "leaky_relu", {}},
           test::flatten("flatten"),
           test::linear("fc1", hidden),
           test::relu("relu"),
           test::linear("out", 10)}};
}

const Network kNetwork(some_network(), {1, 7, 7});

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
  const Trained cpu = trained(kNetwork, "", {.device = "cpu"}), builtin = trained(kNetwork, "builtin"),
                library = trained(kNetwork, "library");
  EXPECT_EQ(cpu.kernels, "");
  EXPECT_EQ(builtin.kernels, "builtin");
  EXPECT_THAT(library.kernels, StartsWith("cuBLASLt stand-in for every layer, cuDNN stand-in for every "
                                          "layer on "));
  expect_close(builtin.parameters, cpu.parameters);
  expect_close(library.parameters, cpu.parameters);
  EXPECT_NE(library.parameters, builtin.parameters) << "both used the same kernels";
}

TEST_F(LibraryTraining, GetsMicroBatchesThatBeginWhereItsTaskSays) {
  const test::Environment variable("SWEEP_CUDA_KERNELS", "library");
  test::Training training = test::kResidual;
  training.batches = {70, 33};
  const test::EngineOutcome whole = test::train(training, test::Way{}),
                            parts = test::train(training, test::Way{.stages = 3, .micro_batches = 3});
  test::expect_near(parts, whole, 1e-4);
}

TEST_F(LibraryTraining, FallsBackIfALibraryHasNoAlgorithm) {
  const Trained builtin = trained(kNetwork, "builtin");
  for (const cudart::LibraryLimits& limits :
       {cudart::LibraryLimits{.has_input_gradients = false}, cudart::LibraryLimits{.fewest_images = 4}}) {
    cudart::set_library_limits(limits);
    const Trained some = trained(kNetwork, "library");
    EXPECT_NE(some.kernels, "builtin");
    expect_close(some.parameters, builtin.parameters);
  }
}

TEST_F(LibraryTraining, EndsIfALibraryRefusesWhatItHasPlanned) {
  cudart::set_library_limits({.refuses = true});
  EXPECT_THROW(trained(kNetwork, "library"), DeviceError);
  EXPECT_EQ(trained(kNetwork, "builtin").kernels, "builtin");
}

TEST_F(LibraryTraining, OpensEachLibraryOncePerProcessAndDevice) {
  cudart::set_library_limits({});
  const int before = cudart::libraries_opened();
  for (int engine = 0; engine < 3; ++engine) trained(kNetwork, "library");
  EXPECT_EQ(cudart::libraries_opened(), before + 2);
  cudart::set_library_limits({.installed = false});
  EXPECT_EQ(trained(kNetwork, "library").kernels, "builtin");
}

TEST_F(LibraryTraining, OpensNoLibraryOfConvolutionsForALinearLayer) {
  cudart::set_library_limits({});
  const int before = cudart::libraries_opened();
  const Network network({"n", {test::flatten("flatten"), test::linear("out", 10)}}, {1, 7, 7});
  EXPECT_THAT(trained(network, "library").kernels, Not(HasSubstr("cuDNN")));
  EXPECT_EQ(cudart::libraries_opened(), before + 1);
}

// 64 images: 2^24 products, and almost.
constexpr LinearShape kWide{64, 4096, true}, kNarrow{64, 4095, true};
constexpr LibraryTask kForward{.direction = Direction::kForward, .images = 64},
    kWeights{.direction = Direction::kBackwardWeights, .images = 64},
    kInput{.direction = Direction::kBackwardInput, .images = 64};

// The stand-in libraries add up forward or backward at random.
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

// The rule by which layers go to a library: shapes, the environment, and what the libraries have.

// The directions that the library does, of three.
std::vector<Direction> directions(KernelRule& rule, const LinearShape& shape) {
  std::vector<Direction> chosen;
  for (const LibraryTask& task : rule.choose(shape, {kForward, kWeights, kInput}).tasks)
    chosen.push_back(task.direction);
  return chosen;
}

TEST_F(KernelRuleTest, ReadsThePolicyFromTheEnvironment) {
  const char* variable = "SWEEP_CUDA_KERNELS";
  for (const auto& [text, policy] : {std::pair{"", KernelPolicy::kByShape},
                                     {"builtin", KernelPolicy::kBuiltin},
                                     {"library", KernelPolicy::kLibrary}}) {
    const test::Environment environment(variable, text);
    EXPECT_EQ(policy_from_environment(), policy) << text;
  }
  const test::Environment environment(variable, "cudnn");
  EXPECT_THAT(
      [] { policy_from_environment(); },
      ThrowsMessage<ConfigError>("SWEEP_CUDA_KERNELS: got \"cudnn\", want builtin, library or nothing"));
}

TEST_F(KernelRuleTest, GivesWideLayersToLibraries) {
  const auto all = ElementsAre(Direction::kForward, Direction::kBackwardWeights, Direction::kBackwardInput);
  const int before = cudart::libraries_opened();
  KernelRule rule(0, true, KernelPolicy::kByShape);
  EXPECT_THAT(directions(rule, kNarrow), ElementsAre());
  EXPECT_EQ(cudart::libraries_opened(), before) << "small networks need not wait for that";
  EXPECT_EQ(kernels_text(rule.used(), 0), "builtin");
  EXPECT_THAT(directions(rule, kWide), all);
  KernelRule builtin(0, true, KernelPolicy::kBuiltin), library(0, true, KernelPolicy::kLibrary);
  EXPECT_THAT(directions(builtin, kWide), ElementsAre());
  EXPECT_THAT(directions(library, kNarrow), all);
  EXPECT_TRUE(rule.may_fuse() && builtin.may_fuse());
  EXPECT_FALSE(library.may_fuse());
}

ConvShape square_conv(int in_channels, int out_channels, int kernel) {
  return {.in_channels = in_channels,
          .in_height = 32,
          .in_width = 32,
          .out_channels = out_channels,
          .out_height = 32,
          .out_width = 32,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .pad_y = kernel / 2,
          .pad_x = kernel / 2,
          .bias = true};
}

TEST_F(KernelRuleTest, CountsTheProductsOfConvolutions) {
  ConvShape shape = square_conv(4, 8, 2);
  EXPECT_EQ(products(shape, {.images = 3}), 3 * 8 * 32 * 32 * 4 * 2 * 2);
  shape.groups = 2;
  EXPECT_EQ(products(shape, {.images = 3}), 3 * 8 * 32 * 32 * 2 * 2 * 2);
}

// As measured on an H100.
TEST_F(KernelRuleTest, KeepsConvolutionsOfFewChannelsForBuiltInKernels) {
  const auto directions_of = [](const ConvShape& shape) {
    std::string text;
    for (const LibraryTask& task : {kForward, kWeights, kInput})
      text += library_is_faster(shape, task) ? "yes " : "no ";
    return text;
  };
  EXPECT_EQ(directions_of(square_conv(3, 64, 3)), "no no yes ") << "sums of 27, 576 products";
  EXPECT_EQ(directions_of(square_conv(16, 16, 3)), "yes no yes ");
  EXPECT_EQ(directions_of(square_conv(64, 64, 3)), "yes yes yes ");
  EXPECT_EQ(directions_of(square_conv(256, 64, 1)), "yes no no ");
  EXPECT_EQ(directions_of(square_conv(2, 2, 5)), "no no no ");
}

TEST_F(KernelRuleTest, LeavesToBuiltInKernelsWhatLibrariesLack) {
  cudart::set_library_limits({.has_input_gradients = false});
  KernelRule some(0, true, KernelPolicy::kByShape);
  EXPECT_THAT(directions(some, kWide), ElementsAre(Direction::kForward, Direction::kBackwardWeights));
  cudart::set_library_limits({.installed = false});
  KernelRule none(0, true, KernelPolicy::kByShape);
  EXPECT_THAT(directions(none, kWide), ElementsAre());
  EXPECT_EQ(kernels_text(none.used(), 0), "builtin");
}

TEST_F(KernelRuleTest, RecordsTheVersionsOnWhichBitsDepend) {
  const auto record = [](KernelPolicy policy, const char* version) {
    cudart::set_library_limits({.version = version});
    KernelRule rule(0, true, policy);
    rule.choose(kWide, {kForward});
    return kernels_text(rule.used(), 0);
  };
  const std::string first = record(KernelPolicy::kByShape, "1");
  EXPECT_EQ(first, "cuBLASLt 1 on " + list_cuda_devices().at(0).description);
  EXPECT_TRUE(is_deterministic(first));
  EXPECT_EQ(record(KernelPolicy::kByShape, "1"), first);
  EXPECT_NE(record(KernelPolicy::kByShape, "2"), first);
  EXPECT_NE(record(KernelPolicy::kLibrary, "1"), first) << "it has other layers";
}

}  // namespace sweep::cuda::library_training_test
