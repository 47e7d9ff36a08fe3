// What `sweep plan` predicts, beside what the program then really takes; and `sweep lr-find`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <sstream>
#include <thread>

#include "tests/support/environment.h"
#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"
#include "tests/support/quarters.h"

namespace sweep::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

std::string file_text(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> children_of(const std::string& pid) {
  std::vector<std::string> children;
  std::error_code error;
  for (const auto& task : fs::directory_iterator("/proc/" + pid + "/task", error)) {
    std::istringstream words(file_text(task.path() / "children"));
    for (std::string word; words >> word;) children.push_back(word);
  }
  return children;
}

// Peak resident memory of the workers of the program that this process runs, in bytes; 0 if there is none.
// The last value of a worker counts: before it runs its own program, it shows that of the process it is from.
class WorkerWatch {
 public:
  WorkerWatch() : thread_([this] { watch(); }) {}
  ~WorkerWatch() { end(); }

  double end() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    return peak_;
  }

 private:
  void watch() {
    while (!stopped_) {
      for (const std::string& program : children_of("self")) {
        for (const std::string& worker : children_of(program)) read(worker);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void read(const std::string& worker) {
    const std::string command = file_text("/proc/" + worker + "/cmdline");
    if (command.find("worker") == std::string::npos) return;
    const std::string status = file_text("/proc/" + worker + "/status");
    const std::size_t at = status.find("VmHWM:");
    constexpr double kKibibyte = 1024;
    if (at != std::string::npos) peak_ = kKibibyte * std::stod(status.substr(at + 6));
  }

  std::atomic<bool> stopped_ = false;
  double peak_ = 0;
  std::thread thread_;
};

struct MemoryCase {
  const char* name;
  const char* network;
  std::vector<std::string> overrides;
};

class PlannedMemory : public ProgramFolder, public ::testing::WithParamInterface<MemoryCase> {};

TEST_P(PlannedMemory, IsWithinAFifthOfTheWorkersPeak) {
  SKIP_WITHOUT_FASHION_MNIST();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers use memory of their own";
#endif
  const std::string source = SWEEP_SOURCE_DIR;
  std::vector<std::string> words = {
      source + "/sweeps/fashion.json",
      std::string("network=") + source + "/sweeps/networks/" + GetParam().network,
      "device=cpu",
      "lr=0.01",
      "epochs=1",
      "shuffle=true",
      "--threads",
      "2"};
  words.insert(words.end(), GetParam().overrides.begin(), GetParam().overrides.end());
  std::vector<std::string> plan = words;
  plan.insert(plan.begin(), "plan");
  const json planned = output(plan).at("runs").at(0);
  const auto predicted = planned.at("memory_bytes").get<double>();
  WorkerWatch watch;
  run(words);
  const double measured = watch.end();
  ASSERT_GT(measured, 0) << "no worker was seen";
  constexpr double kError = 0.2;
  EXPECT_NEAR(predicted, measured, kError * measured) << planned.at("memory");
  // The disk, while it is there.
  double bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "runs/fashion")) {
    const bool of_sweep = entry.path().parent_path() == folder_.path() / "runs/fashion";
    if (entry.is_regular_file() && !of_sweep) bytes += static_cast<double>(entry.file_size());
  }
  const auto disk = planned.at("disk_bytes").get<double>();
  EXPECT_NEAR(disk, bytes, kError * bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlannedMemory,
    ::testing::Values(
        MemoryCase{
            "SmallBatch", "fashion-cnn.json", {"batch_size=100", "num_workers=0", "dataset.limit=3000"}},
        MemoryCase{"LargeBatchWithWorkers",
                   "fashion-cnn.json",
                   {"batch_size=10000", "num_workers=2", "dataset.validation=10000"}},
        MemoryCase{"Sgd", "fashion-cnn.json", {"batch_size=1000", "num_workers=0", "optimizer=sgd"}},
        MemoryCase{"BatchNorm", "resnet.json", {"batch_size=256", "num_workers=0", "dataset.limit=512"}}),
    [](const auto& kind) { return std::string(kind.param.name); });

class PlanOfQuarters : public ProgramFolder {
 protected:
  PlanOfQuarters() { write_quarters(folder_.path()); }

  const test::Environment cache_{"XDG_CACHE_HOME", path("cache").string()};
};

TEST_F(PlanOfQuarters, ThePilotsPredictionIsComparedWithTheSweepOnce) {
  EXPECT_GT(output({"plan", "quarters.json", "--pilot"}).at("seconds").get<double>(), 0);
  EXPECT_FALSE(exists("runs")) << "a plan leaves nothing";
  EXPECT_THAT(run({"quarters.json"}).err,
              ::testing::ContainsRegex("Predicted [0-9.]+ s, took [0-9.]+ s \\([+-][0-9.]+ %\\)"));
  EXPECT_THAT(run({"quarters.json"}).err, ::testing::Not(HasSubstr("Predicted")));
}

TEST_F(PlanOfQuarters, SaysWhatWouldBeReplaced) {
  run({"quarters.json", "epochs=1"});
  const auto fates = [&](const std::vector<std::string>& more, int code = 0) {
    std::vector<std::string> words = {"plan", "quarters.json", "epochs=1"};
    words.insert(words.end(), more.begin(), more.end());
    std::set<std::string> all;
    const json plan = output(words, code);
    for (const json& entry : plan.at("runs")) all.insert(entry.at("fate"));
    return all;
  };
  EXPECT_EQ(fates({}), std::set<std::string>{"kept"});
  EXPECT_EQ(fates({"seed=77"}, 2), std::set<std::string>{"in the way"});
  EXPECT_EQ(fates({"seed=77", "--replace"}), std::set<std::string>{"replaced"});
  EXPECT_EQ(fates({"--logdir", "elsewhere"}), std::set<std::string>{"new"});
}

TEST_F(PlanOfQuarters, LrFindSuggestsALearningRateThatTrainsAndLeavesTheSweepAlone) {
  run({"quarters.json", "epochs=1"});
  const std::string before = content("runs/quarters/results.json");
  const Finished found = run({"lr-find", "quarters.json", "--json", "--tensorboard"});
  const json curve = json::parse(found.out);
  EXPECT_EQ(run({"lr-find", "quarters.json", "--json"}).out, found.out) << "the same bits each time";
  EXPECT_EQ(content("runs/quarters/results.json"), before);
  EXPECT_TRUE(fs::is_directory(folder_.path() / "runs/quarters.lr-find"));
  ASSERT_FALSE(curve.at("minimum_tenth").is_null());
  const std::string lr = curve.at("minimum_tenth").dump();
  run({"quarters.json", "lr=" + lr, "name=found", "epochs=6"});
  for (const json& trained : results("found")) {
    EXPECT_LT(trained.at("epochs").back().at("loss").get<double>(),
              0.8 * trained.at("epochs").front().at("loss").get<double>());
  }
}

}  // namespace
}  // namespace sweep::testing
