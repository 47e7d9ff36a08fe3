// The autotuner on the stand-in, with a timer that the test controls: what it measures, chooses and records.
// And the comparison of built-in kernels with a library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "core/kernels/cuda/host/library_limits.h"
#include "core/kernels/cuda/host/memory_limit.h"
#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"
#include "tests/support/temporary_directory.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;

class KernelAutotunerTest : public testing::Test {
 protected:
  ~KernelAutotunerTest() override {
    host::set_library_limits({});
    host::set_memory_limit(std::numeric_limits<std::size_t>::max());
  }

  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  const fs::path file_ = root_ / "new/cuda-choices.json";
};

TEST_F(KernelAutotunerTest, ReadsThePolicyFromTheEnvironment) {
  const char* variable = "SWEEP_CUDA_KERNELS";
  const char* before = std::getenv(variable);
  const std::string old = before != nullptr ? before : "";
  for (const auto& [text, policy] : {std::pair{"", KernelPolicy::kMeasured},
                                     {"measured", KernelPolicy::kMeasured},
                                     {"own", KernelPolicy::kBuiltin},
                                     {"library", KernelPolicy::kLibrary}}) {
    ::setenv(variable, text, 1);
    EXPECT_EQ(policy_from_environment(), policy);
  }
  ::setenv(variable, "cudnn", 1);
  EXPECT_THAT([] { policy_from_environment(); },
              ThrowsMessage<ConfigError>("SWEEP_CUDA_KERNELS: got \"cudnn\", want measured, own or library"));
  ::setenv(variable, old.c_str(), 1);
}

constexpr LinearShape kWide{64, 4096, true};  // 2^18 products for each image
constexpr LibraryTask kForward{.direction = Direction::kForward, .images = 64, .relu = true};

class Autotuner : public KernelAutotunerTest {
 protected:
  // A timer by which built-in kernels take `builtin_seconds` and libraries 1. It runs the work all the same.
  KernelTimer timer(double builtin_seconds) {
    return [this, builtin_seconds](Stream& stream, const std::function<void()>& work) {
      work();
      stream.wait();
      return ++measurements_ % 2 == 1 ? builtin_seconds : 1;
    };
  }
  KernelAutotuner autotuner(double builtin_seconds, const std::string& recorded = "",
                            KernelPolicy policy = KernelPolicy::kMeasured) {
    return KernelAutotuner(
        {.recorded = recorded, .policy = policy, .choices = file_, .timer = timer(builtin_seconds)});
  }
  int measurements_ = 0;
};

std::vector<Direction> directions(const std::vector<LibraryTask>& tasks) {
  std::vector<Direction> result;
  for (const LibraryTask& task : tasks) result.push_back(task.direction);
  return result;
}

TEST_F(Autotuner, ChoosesTheFasterKernel) {
  KernelAutotuner slow = autotuner(2);
  EXPECT_THAT(directions(slow.choose("fc", kWide, {kForward})), ElementsAre(Direction::kForward));
  EXPECT_EQ(measurements_, 2);
  EXPECT_EQ(slow.record(),
            R"({"device":"CUDA stand-in on the host, for tests","libraries":["cuBLASLt stand-in"],)"
            R"("layers":{"fc":["forward"]}})");
  fs::remove_all(file_.parent_path());
  KernelAutotuner fast = autotuner(0.5);
  EXPECT_THAT(fast.choose("fc", kWide, {kForward}), IsEmpty());
  EXPECT_EQ(fast.record(), "own");
}

TEST_F(Autotuner, MeasuresNothingTwice) {
  autotuner(2).choose("fc", kWide, {kForward});
  EXPECT_EQ(directions(autotuner(0.5).choose("another", kWide, {kForward})).size(), 1u);
  EXPECT_EQ(measurements_, 2);
  LibraryTask smaller = kForward;
  smaller.images = 65;
  EXPECT_THAT(autotuner(0.5).choose("fc", kWide, {smaller}), IsEmpty())
      << "another batch size is another task";
  EXPECT_EQ(measurements_, 4);
  host::set_library_limits({.version = "2"});
  EXPECT_THAT(autotuner(0.5).choose("fc", kWide, {kForward}), IsEmpty()) << "as is another version";
  EXPECT_EQ(measurements_, 6);
}

TEST_F(Autotuner, DoesNotMeasureSmallLayers) {
  LibraryTask small = kForward;
  small.images = 63;
  ASSERT_LT(products(kWide, small), kMinProducts);
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {small}), IsEmpty());
  EXPECT_EQ(measurements_, 0);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Autotuner, NeverChoosesALibraryWithWrongResults) {
  host::set_library_limits({.wrong_by = 1});
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {kForward}), IsEmpty());
  host::set_library_limits({.version = "that refuses", .refuses = true});
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {kForward}), IsEmpty());
  host::set_library_limits({.version = "that loses NaNs", .relu_keeps_nan = false});
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {kForward}), IsEmpty());
  EXPECT_EQ(measurements_, 0) << "nothing to measure";
  LibraryTask linear = kForward;
  linear.relu = false;
  EXPECT_EQ(directions(autotuner(2).choose("fc", kWide, {linear})).size(), 1u);
}

TEST_F(Autotuner, ChoosesLibrariesForLargeLayersWithoutATimer) {
  KernelAutotuner none({.policy = KernelPolicy::kMeasured, .choices = file_, .timer = {}});
  LibraryTask small = kForward;
  small.images = 1;
  EXPECT_EQ(directions(none.choose("fc", kWide, {kForward})).size(), 1u);
  EXPECT_THAT(none.choose("fc2", kWide, {small}), IsEmpty());
}

TEST_F(Autotuner, ChoosesLibrariesForLargeLayersIfItCannotMeasureOrKeep) {
  KernelAutotuner nowhere({.policy = KernelPolicy::kMeasured, .choices = {}, .timer = timer(0.5)});
  EXPECT_EQ(directions(nowhere.choose("fc", kWide, {kForward})).size(), 1u);
  EXPECT_EQ(measurements_, 0);
  const std::size_t before = host::memory_in_use();
  host::set_memory_limit(before + 1000);
  EXPECT_EQ(directions(autotuner(0.5).choose("fc", kWide, {kForward})).size(), 1u);
  EXPECT_EQ(host::memory_in_use(), before);
  host::set_memory_limit(std::numeric_limits<std::size_t>::max());
  EXPECT_THAT(autotuner(0.5).choose("fc", kWide, {kForward}), IsEmpty()) << "measured once there is memory";
}

TEST_F(Autotuner, ChoosesBuiltInKernelsWithoutLibraries) {
  host::set_library_limits({.installed = false});
  for (const KernelPolicy policy : {KernelPolicy::kMeasured, KernelPolicy::kLibrary}) {
    KernelAutotuner autotuner_ = autotuner(2, "", policy);
    EXPECT_THAT(autotuner_.choose("fc", kWide, {kForward}), IsEmpty());
    EXPECT_EQ(autotuner_.record(), "own");
  }
}

TEST_F(Autotuner, FollowsTheRecordWhateverThePolicy) {
  std::vector<LibraryTask> tasks;
  for (const Direction direction : kTrainingDirections)
    tasks.push_back({.direction = direction, .images = 2});
  KernelAutotuner first = autotuner(2, "", KernelPolicy::kLibrary);
  EXPECT_EQ(first.choose("fc", kWide, {tasks[0], tasks[2]}).size(), 2u);
  KernelAutotuner same = autotuner(2, first.record(), KernelPolicy::kBuiltin);
  EXPECT_THAT(directions(same.choose("fc", kWide, tasks)),
              ElementsAre(Direction::kForward, Direction::kBackwardInput));
  EXPECT_THAT(same.choose("other", kWide, tasks), IsEmpty());
  EXPECT_EQ(same.record(), first.record());
  KernelAutotuner own = autotuner(2, "own", KernelPolicy::kLibrary);
  EXPECT_THAT(own.choose("fc", kWide, tasks), IsEmpty());
  EXPECT_EQ(own.record(), "own");
  EXPECT_EQ(measurements_, 0);
}

TEST_F(Autotuner, RecordsADifferenceIfItCannotFollowTheRecord) {
  KernelAutotuner first = autotuner(2, "", KernelPolicy::kLibrary);
  first.choose("fc", kWide, {kForward});
  const auto record_now = [&] {
    KernelAutotuner next = autotuner(2, first.record());
    next.choose("fc", kWide, {kForward});
    return next.record();
  };
  EXPECT_EQ(record_now(), first.record());
  host::set_library_limits({.version = "another"});
  EXPECT_NE(record_now(), first.record());
  host::set_library_limits({.installed = false});
  EXPECT_EQ(record_now(), "own");
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& record :
       {std::string("nonsense"), std::string("{"), R"({"layers":)" + deep + "}",
        std::string(R"({"layers":["fc"]})"), std::string(R"({"layers":{"fc":[["forward"],1]}})")}) {
    KernelAutotuner nonsense = autotuner(2, record);
    EXPECT_THAT(nonsense.choose("fc", kWide, {kForward}), IsEmpty()) << record.substr(0, 100);
  }
}

// ---- the comparison ----

TEST_F(Autotuner, ComparesEveryDirectionOfEveryShape) {
  const LinearShape linears[] = {{7, 5, true}, {33, 70, false}, {1, 1, true}};
  const ConvShape convs[] = {{.in_channels = 4,
                              .in_height = 9,
                              .in_width = 7,
                              .out_channels = 6,
                              .out_height = 4,
                              .out_width = 3,
                              .kernel_height = 3,
                              .kernel_width = 2,
                              .stride_y = 2,
                              .stride_x = 2,
                              .pad_y = 1,
                              .pad_x = 1,
                              .dilation_y = 1,
                              .dilation_x = 2,
                              .groups = 2,
                              .bias = true},
                             {.in_channels = 3,
                              .in_height = 5,
                              .in_width = 5,
                              .out_channels = 3,
                              .out_height = 5,
                              .out_width = 5,
                              .kernel_height = 1,
                              .kernel_width = 1,
                              .stride_y = 1,
                              .stride_x = 1,
                              .pad_y = 0,
                              .pad_x = 0,
                              .dilation_y = 1,
                              .dilation_x = 1,
                              .groups = 1,
                              .bias = false}};
  const auto check = [&](const auto& shape) {
    for (const Direction direction : kTrainingDirections) {
      for (const bool flag : {false, true}) {
        const LibraryTask task{.direction = direction,
                               .images = 150,
                               .relu = flag && direction == Direction::kForward,
                               .add = flag && direction == Direction::kBackwardInput,
                               .weight_offset = 3,
                               .bias_offset = 77};
        const auto plan = open_libraries(0).of(shape)->plan(shape, task, kMaxWorkspace);
        const Comparison comparison = compare(shape, task, *plan, timer(3));
        EXPECT_TRUE(comparison.agree) << to_string(direction) << flag;
        EXPECT_EQ(comparison.builtin_seconds, 3);
        EXPECT_EQ(comparison.library_seconds, 1);
      }
    }
  };
  for (const LinearShape& shape : linears) check(shape);
  for (const ConvShape& shape : convs) check(shape);
}

}  // namespace
}  // namespace sweep::cuda
