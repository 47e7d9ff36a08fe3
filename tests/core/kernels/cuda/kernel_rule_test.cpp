// The rule by which layers go to a library: shapes, the environment, and what the libraries have.
#include "core/kernels/cuda/libraries/kernel_rule.h"

#include "core/engine/engine.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "tests/cudart/library_limits.h"
#include "tests/support/test.h"

namespace sweep::cuda::kernel_rule_test {

// 64 images: 2^24 products, and almost.
constexpr LinearShape kWide{64, 4096, true}, kNarrow{64, 4095, true};
constexpr LibraryTask kForward{.direction = Direction::kForward, .images = 64},
    kWeights{.direction = Direction::kBackwardWeights, .images = 64},
    kInput{.direction = Direction::kBackwardInput, .images = 64};

class KernelRuleTest : public testing::Test {
 protected:
  void TearDown() override { cudart::set_library_limits({}); }
};

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
          .stride_y = 1,
          .stride_x = 1,
          .pad_y = kernel / 2,
          .pad_x = kernel / 2,
          .dilation_y = 1,
          .dilation_x = 1,
          .groups = 1,
          .bias = true};
}

TEST_F(KernelRuleTest, CountsTheProductsOfConvolutions) {
  ConvShape shape = square_conv(4, 8, 2);
  EXPECT_EQ(products(shape, {.images = 3}), 3 * 8 * 32 * 32 * 4 * 2 * 2);
  shape.groups = 2;
  EXPECT_EQ(products(shape, {.images = 3}), 3 * 8 * 32 * 32 * 2 * 2 * 2);
}

// As measured on an H100: see library_benchmark.
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

}  // namespace sweep::cuda::kernel_rule_test
