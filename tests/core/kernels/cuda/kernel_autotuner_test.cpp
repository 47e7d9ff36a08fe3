// The choice between own kernels and a library's: what is measured, what is kept, what is recorded. With a
// timer of the test's own, on the stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/host/library_limits.h"
#include "core/kernels/cuda/host/memory_limit.h"
#include "core/kernels/cuda/libraries/kernel_autotuner.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"
#include "tests/support/batch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_networks.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

class KernelChoice : public testing::Test {
 protected:
  ~KernelChoice() override {
    host::set_library_limits({});
    host::set_memory_limit(std::numeric_limits<std::size_t>::max());
  }

  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  const fs::path file_ = root_ / "new/cuda-choices.json";
};

// ---- the file ----

std::optional<Choice> own(int* count) {
  ++*count;
  return Choice{false, 1e-5, 2e-5};
}
std::optional<Choice> library(int* count) {
  ++*count;
  return Choice{true, 2e-5, 1e-5};
}

TEST_F(KernelChoice, IsMeasuredOnceAndKept) {
  int count = 0;
  EXPECT_TRUE(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return library(&count); })->library);
  EXPECT_FALSE(ChoiceCache(file_).find_or_measure("GPU", "b", [&] { return own(&count); })->library);
  // What would be measured now is something else, but decided is decided.
  EXPECT_TRUE(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return own(&count); })->library);
  EXPECT_FALSE(ChoiceCache(file_).find_or_measure("GPU", "b", [&] { return library(&count); })->library);
  EXPECT_EQ(count, 2);
  EXPECT_FALSE(ChoiceCache(file_).find_or_measure("another GPU", "a", [&] { return own(&count); })->library);
  EXPECT_EQ(count, 3);
  const json content = json::parse(read_file(file_));
  EXPECT_EQ(content["choices"]["GPU"]["a"]["kernel"], "library");
  EXPECT_EQ(content["choices"]["GPU"]["a"]["library_seconds"], 1e-5);
}

TEST_F(KernelChoice, IsMeasuredAgainWhereTheFileIsDamagedAnywhere) {
  int count = 0;
  ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return library(&count); });
  const std::string good = read_file(file_);
  std::vector<std::string> damaged = {R"({"version": 0, "choices": {}})", R"([1])", R"({"version": 1})",
                                      R"({"version": 1, "choices": {"GPU": 3}})",
                                      R"({"version": 1, "choices": {"GPU": {"a": {"kernel": "best"}}}})"};
  for (std::size_t size = 0; size + 2 < good.size(); ++size) damaged.push_back(good.substr(0, size));
  for (const std::string& content : damaged) {
    std::ofstream(file_, std::ios::trunc) << content;
    count = 0;
    EXPECT_FALSE(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return own(&count); })->library);
    EXPECT_EQ(count, 1) << content;
    EXPECT_EQ(json::parse(read_file(file_))["choices"]["GPU"]["a"]["kernel"], "own") << content;
  }
}

TEST_F(KernelChoice, IsNotMeasuredWhereItCannotBeKept) {
  int count = 0;
  fs::create_directories(root_);
  std::ofstream(root_ / "new") << "a file where the directory should be";
  EXPECT_EQ(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return library(&count); }), std::nullopt);
  EXPECT_EQ(ChoiceCache({}).find_or_measure("GPU", "a", [&] { return library(&count); }), std::nullopt);
  EXPECT_EQ(count, 0);
}

TEST_F(KernelChoice, OfProcessesThatMeasureAtOnceIsThatOfTheFirst) {
  constexpr int kProcesses = 8, kTasks = 5;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    const ChoiceCache cache(file_);
    bool good = true;
    for (int task = 0; task < kTasks; ++task) {
      // All processes have another opinion; the one that is kept counts.
      const auto choice = cache.find_or_measure("GPU", std::to_string(task), [&]() -> std::optional<Choice> {
        ::usleep(2000);
        std::ofstream(root_ / "measured", std::ios::app) << task << "\n";
        return Choice{p % 2 == 0, 1.0 + p, 2};
      });
      const auto again = cache.find_or_measure("GPU", std::to_string(task), [] { return std::nullopt; });
      good = good && choice && again && choice->builtin_seconds == again->builtin_seconds;
      cache.find_or_measure("GPU", "own task of " + std::to_string(p), [] { return Choice{}; });
    }
    ::_exit(good ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(json::parse(read_file(file_))["choices"]["GPU"].size(), std::size_t{kTasks + kProcesses});
  const std::string measured = read_file(root_ / "measured");
  EXPECT_EQ(std::count(measured.begin(), measured.end(), '\n'), kTasks) << "each once";
}

// ---- the policy ----

TEST_F(KernelChoice, IsWhatTheEnvironmentSays) {
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

class Chooser : public KernelChoice {
 protected:
  // A timer by which own kernels take `own` seconds and then libraries 1. It still lets them do their work.
  KernelTimer timer(double builtin_seconds) {
    return [this, builtin_seconds](Stream& stream, const std::function<void()>& work) {
      work();
      stream.wait();
      return ++looks_ % 2 == 1 ? builtin_seconds : 1;
    };
  }
  KernelAutotuner autotuner(double builtin_seconds, const std::string& recorded = "",
                            KernelPolicy policy = KernelPolicy::kMeasured) {
    return KernelAutotuner(
        {.recorded = recorded, .policy = policy, .choices = file_, .timer = timer(builtin_seconds)});
  }
  int looks_ = 0;
};

std::vector<Direction> works(const std::vector<LibraryTask>& tasks) {
  std::vector<Direction> result;
  for (const LibraryTask& task : tasks) result.push_back(task.direction);
  return result;
}

TEST_F(Chooser, TakesTheFasterKernel) {
  KernelAutotuner slow = autotuner(2);
  EXPECT_THAT(works(slow.choose("fc", kWide, {kForward})), ElementsAre(Direction::kForward));
  EXPECT_EQ(looks_, 2);
  EXPECT_EQ(slow.record(),
            R"({"device":"CUDA stand-in on the host, for tests","libraries":["cuBLASLt stand-in"],)"
            R"("layers":{"fc":["forward"]}})");
  KernelAutotuner fast = autotuner(0.5);
  EXPECT_THAT(fast.choose("fc", kWide, {kForward}), IsEmpty());
  EXPECT_EQ(fast.record(), "own");
}

TEST_F(Chooser, MeasuresNothingTwice) {
  autotuner(2).choose("fc", kWide, {kForward});
  EXPECT_EQ(works(autotuner(0.5).choose("another", kWide, {kForward})).size(), 1u);
  EXPECT_EQ(looks_, 2);
  LibraryTask smaller = kForward;
  smaller.images = 65;
  EXPECT_THAT(autotuner(0.5).choose("fc", kWide, {smaller}), IsEmpty())
      << "another batch size is another task";
  EXPECT_EQ(looks_, 4);
  host::set_library_limits({.version = "2"});
  EXPECT_THAT(autotuner(0.5).choose("fc", kWide, {kForward}), IsEmpty()) << "as is another version";
  EXPECT_EQ(looks_, 6);
}

TEST_F(Chooser, LeavesSmallLayersToOwnKernelsUnmeasured) {
  LibraryTask small = kForward;
  small.images = 63;
  ASSERT_LT(products(kWide, small), kMinProducts);
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {small}), IsEmpty());
  EXPECT_EQ(looks_, 0);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(Chooser, NeverTakesALibraryThatGivesOtherNumbers) {
  host::set_library_limits({.wrong_by = 1});
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {kForward}), IsEmpty());
  host::set_library_limits({.version = "that refuses", .refuses = true});
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {kForward}), IsEmpty());
  host::set_library_limits({.version = "that loses NaNs", .relu_keeps_nan = false});
  EXPECT_THAT(autotuner(2).choose("fc", kWide, {kForward}), IsEmpty());
  EXPECT_EQ(looks_, 0) << "nothing to measure";
  LibraryTask linear = kForward;
  linear.relu = false;
  EXPECT_EQ(works(autotuner(2).choose("fc", kWide, {linear})).size(), 1u);
}

TEST_F(Chooser, WithoutAClockLibrariesHaveWhatIsLarge) {
  KernelAutotuner none({.policy = KernelPolicy::kMeasured, .choices = file_, .timer = {}});
  LibraryTask small = kForward;
  small.images = 1;
  EXPECT_EQ(works(none.choose("fc", kWide, {kForward})).size(), 1u);
  EXPECT_THAT(none.choose("fc2", kWide, {small}), IsEmpty());
}

TEST_F(Chooser, WithoutAPlaceToKeepChoicesOrMemoryToMeasureLibrariesHaveWhatIsLarge) {
  KernelAutotuner nowhere({.policy = KernelPolicy::kMeasured, .choices = {}, .timer = timer(0.5)});
  EXPECT_EQ(works(nowhere.choose("fc", kWide, {kForward})).size(), 1u);
  EXPECT_EQ(looks_, 0);
  const std::size_t before = host::memory_in_use();
  host::set_memory_limit(before + 1000);
  EXPECT_EQ(works(autotuner(0.5).choose("fc", kWide, {kForward})).size(), 1u);
  EXPECT_EQ(host::memory_in_use(), before);
  host::set_memory_limit(std::numeric_limits<std::size_t>::max());
  EXPECT_THAT(autotuner(0.5).choose("fc", kWide, {kForward}), IsEmpty()) << "measured once there is memory";
}

TEST_F(Chooser, WithoutLibrariesEverythingIsOwn) {
  host::set_library_limits({.installed = false});
  for (const KernelPolicy policy : {KernelPolicy::kMeasured, KernelPolicy::kLibrary}) {
    KernelAutotuner autotuner_ = autotuner(2, "", policy);
    EXPECT_THAT(autotuner_.choose("fc", kWide, {kForward}), IsEmpty());
    EXPECT_EQ(autotuner_.record(), "own");
  }
}

TEST_F(Chooser, DoesWhatIsRecordedWhateverElseWouldBeChosen) {
  std::vector<LibraryTask> tasks;
  for (const Direction direction : kTrainingDirections)
    tasks.push_back({.direction = direction, .images = 2});
  KernelAutotuner first = autotuner(2, "", KernelPolicy::kLibrary);
  EXPECT_EQ(first.choose("fc", kWide, {tasks[0], tasks[2]}).size(), 2u);
  KernelAutotuner same = autotuner(2, first.record(), KernelPolicy::kBuiltin);
  EXPECT_THAT(works(same.choose("fc", kWide, tasks)),
              ElementsAre(Direction::kForward, Direction::kBackwardInput));
  EXPECT_THAT(same.choose("other", kWide, tasks), IsEmpty());
  EXPECT_EQ(same.record(), first.record());
  KernelAutotuner own = autotuner(2, "own", KernelPolicy::kLibrary);
  EXPECT_THAT(own.choose("fc", kWide, tasks), IsEmpty());
  EXPECT_EQ(own.record(), "own");
  EXPECT_EQ(looks_, 0);
}

TEST_F(Chooser, RecordsSomethingElseWhereItCannotDoWhatIsRecorded) {
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
  KernelAutotuner nonsense = autotuner(2, "nonsense");
  EXPECT_THAT(nonsense.choose("fc", kWide, {kForward}), IsEmpty());
}

// ---- the comparison ----

TEST_F(Chooser, ComparesEveryWorkOfEveryShape) {
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

// ---- the engine ----

NetworkSpec some_network() {
  return {"n",
          {test::conv("conv", 5, 3),
           {"leaky", "leaky_relu", {}},
           test::flatten("flatten"),
           test::linear("fc1", 12),
           test::relu("relu"),
           test::linear("out", 10)}};
}

struct Trained {
  std::vector<float> parameters;
  std::string kernels;
};

// 8 steps, some with batches of 3 instead of 5.
Trained trained(const Network& network, const std::string& policy, const std::string& kernels = "",
                const std::string& device = "cuda") {
  ::setenv("SWEEP_CUDA_KERNELS", policy.c_str(), 1);
  const auto engine =
      make_engine(network, {.device = parse_device(device), .batch_size = 5, .kernels = kernels});
  ::unsetenv("SWEEP_CUDA_KERNELS");
  engine->set_parameters(initial_parameters(network, 3));
  for (std::uint64_t step = 0; step < 8; ++step)
    engine->train(test::random_batch(step % 3 == 0 ? 3 : 5, 49, 10, step).view(), 0.1);
  return {engine->parameters(), engine->kernels()};
}

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST_F(KernelChoice, OfALibraryTrainsAsTheOwnKernelsAndTheCpuDo) {
  const Network network(some_network(), {1, 7, 7});
  const Trained cpu = trained(network, "", "", "cpu"), own = trained(network, "own"),
                library = trained(network, "library");
  EXPECT_EQ(cpu.kernels, "");
  EXPECT_EQ(own.kernels, "own");
  EXPECT_EQ(json::parse(library.kernels)["layers"],
            json::parse(R"({"conv": ["forward", "weights"], "fc1": ["forward", "weights", "input"],
                            "out": ["forward", "weights", "input"]})"));
  expect_close(own.parameters, cpu.parameters);
  expect_close(library.parameters, cpu.parameters);
  EXPECT_NE(library.parameters, own.parameters) << "or it were no choice";
}

TEST_F(KernelChoice, OfAnEarlierEngineGivesTheSameBits) {
  const Network network(some_network(), {1, 7, 7});
  const Trained own = trained(network, "own"), library = trained(network, "library");
  for (const Trained& first : {own, library}) {
    for (const char* policy : {"own", "library", "measured"}) {
      const Trained again = trained(network, policy, first.kernels);
      EXPECT_EQ(again.kernels, first.kernels);
      EXPECT_EQ(again.parameters, first.parameters);
    }
  }
}

TEST_F(KernelChoice, LeavesShortBatchesThatALibraryDoesNotTakeToOwnKernels) {
  const Network network(some_network(), {1, 7, 7});
  const Trained own = trained(network, "own");
  host::set_library_limits({.fewest_images = 4});
  const Trained library = trained(network, "library");
  EXPECT_NE(library.kernels, "own");
  expect_close(library.parameters, own.parameters);
}

}  // namespace
}  // namespace sweep::cuda
