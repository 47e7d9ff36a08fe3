// Nondeterministic library kernels: chosen only if EngineOptions::deterministic is false, and told apart from
// the others wherever bits matter. The stand-in libraries add up forward or backward at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/host/library_limits.h"
#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"
#include "tests/support/batch.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::IsEmpty;

constexpr LinearShape kWide{64, 4096, true};
constexpr LibraryTask kForward{.direction = Direction::kForward, .images = 64};

class Nondeterminism : public testing::Test {
 protected:
  ~Nondeterminism() override { host::set_library_limits({}); }

  // Its timer finds libraries `library` seconds faster than built-in kernels.
  KernelAutotuner autotuner(bool deterministic, double library = 1, const std::string& recorded = "") {
    return KernelAutotuner({.recorded = recorded,
                            .deterministic = deterministic,
                            .policy = KernelPolicy::kMeasured,
                            .choices = root_ / "choices.json",
                            .timer = [this, library](Stream& stream, const std::function<void()>& work) {
                              work();
                              stream.wait();
                              return ++measurements_ % 2 == 1 ? 1 + library : 1;
                            }});
  }

  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  int measurements_ = 0;
};

TEST_F(Nondeterminism, IsChosenOnlyIfAllowedAndIsRecorded) {
  KernelAutotuner strict = autotuner(true), loose = autotuner(false);
  const auto ordered = strict.choose("fc", kWide, {kForward}), any = loose.choose("fc", kWide, {kForward});
  ASSERT_EQ(ordered.size(), 1u);
  ASSERT_EQ(any.size(), 1u);
  EXPECT_TRUE(ordered[0].deterministic);
  EXPECT_FALSE(any[0].deterministic);
  EXPECT_TRUE(gives_same_bits(strict.record())) << strict.record();
  EXPECT_FALSE(gives_same_bits(loose.record())) << loose.record();
}

TEST_F(Nondeterminism, IsMeasuredAsATaskOfItsOwn) {
  autotuner(true, -0.5).choose("fc", kWide, {kForward});
  EXPECT_EQ(measurements_, 2);
  EXPECT_EQ(autotuner(false).choose("fc", kWide, {kForward}).size(), 1u);
  EXPECT_EQ(measurements_, 4);
  EXPECT_THAT(autotuner(true).choose("fc", kWide, {kForward}), IsEmpty()) << "as decided";
  EXPECT_EQ(autotuner(false, -0.5).choose("fc", kWide, {kForward}).size(), 1u) << "as decided";
  EXPECT_EQ(measurements_, 4);
  const json kept = json::parse(read_file(root_ / "choices.json"));
  for (const auto& [setting, tasks] : kept.at("choices").items()) {
    ASSERT_EQ(tasks.size(), 2u) << setting;
    for (const auto& [task, choice] : tasks.items()) {
      const bool any = task.find("in any order") != std::string::npos;
      EXPECT_EQ(choice.at("kernel"), any ? "library" : "own") << task;
    }
  }
}

TEST_F(Nondeterminism, IsNotRecordedIfTheLibraryIsDeterministic) {
  host::set_library_limits({.has_any_order = false});
  KernelAutotuner loose = autotuner(false);
  const auto chosen = loose.choose("fc", kWide, {kForward});
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_TRUE(chosen[0].deterministic);
  EXPECT_TRUE(gives_same_bits(loose.record()));
  EXPECT_EQ(loose.record().find("same_bits"), std::string::npos);
}

TEST_F(Nondeterminism, ChangesTheRecord) {
  KernelAutotuner loose = autotuner(false);
  loose.choose("fc", kWide, {kForward});
  const auto record_now = [&](bool deterministic) {
    KernelAutotuner next = autotuner(deterministic, 1, loose.record());
    next.choose("fc", kWide, {kForward});
    return next.record();
  };
  EXPECT_EQ(record_now(false), loose.record());
  EXPECT_NE(record_now(true), loose.record()) << "such an engine cannot go on with these kernels";
  EXPECT_TRUE(gives_same_bits(record_now(true)));
}

TEST_F(Nondeterminism, AgreesWithBuiltInKernelsInEveryDirection) {
  const ConvShape conv{.in_channels = 4,
                       .in_height = 9,
                       .in_width = 7,
                       .out_channels = 6,
                       .out_height = 4,
                       .out_width = 3,
                       .kernel_height = 3,
                       .kernel_width = 3,
                       .stride_y = 2,
                       .stride_x = 2,
                       .pad_y = 1,
                       .pad_x = 1,
                       .dilation_y = 1,
                       .dilation_x = 1,
                       .groups = 2,
                       .bias = true};
  const auto check = [&](const auto& shape, Direction direction) {
    const LibraryTask task{.direction = direction, .images = 50, .deterministic = false};
    const auto plan = open_libraries(0).of(shape)->plan(shape, task, kMaxWorkspace);
    EXPECT_FALSE(plan->deterministic());
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(compare(shape, task, *plan, [](Stream&, const auto&) { return 1.0; }).agree)
          << to_string(direction);
    }
  };
  for (const Direction direction : kTrainingDirections) {
    check(LinearShape{33, 70, true}, direction);
    check(conv, direction);
  }
}

// ---- the engine ----

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
  host::set_library_limits({.has_any_order = false});
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
