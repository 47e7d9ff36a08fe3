// The file that keeps the autotuner's decisions: what is measured once, and what several processes do at a
// time.
#include "core/kernels/cuda/libraries/choice_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/temporary_directory.h"

namespace sweep::cuda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ChoiceCacheTest : public testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  const fs::path file_ = root_ / "new/cuda-choices.json";
};

std::optional<Choice> builtin(int* count) {
  ++*count;
  return Choice{false, 1e-5, 2e-5};
}
std::optional<Choice> library(int* count) {
  ++*count;
  return Choice{true, 2e-5, 1e-5};
}

TEST_F(ChoiceCacheTest, MeasuresATaskOnceAndKeepsTheChoice) {
  int count = 0;
  EXPECT_TRUE(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return library(&count); })->library);
  EXPECT_FALSE(ChoiceCache(file_).find_or_measure("GPU", "b", [&] { return builtin(&count); })->library);
  // A new measurement would decide otherwise, but the decision stays.
  EXPECT_TRUE(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return builtin(&count); })->library);
  EXPECT_FALSE(ChoiceCache(file_).find_or_measure("GPU", "b", [&] { return library(&count); })->library);
  EXPECT_EQ(count, 2);
  EXPECT_FALSE(
      ChoiceCache(file_).find_or_measure("another GPU", "a", [&] { return builtin(&count); })->library);
  EXPECT_EQ(count, 3);
  const json content = json::parse(read_file(file_));
  EXPECT_EQ(content["choices"]["GPU"]["a"]["kernel"], "library");
  EXPECT_EQ(content["choices"]["GPU"]["a"]["library_seconds"], 1e-5);
}

TEST_F(ChoiceCacheTest, MeasuresAgainIfTheFileIsDamaged) {
  int count = 0;
  ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return library(&count); });
  const std::string good = read_file(file_);
  std::vector<std::string> damaged = {R"({"version": 0, "choices": {}})", R"([1])", R"({"version": 1})",
                                      R"({"version": 1, "choices": {"GPU": 3}})",
                                      R"({"version": 1, "choices": {"GPU": {"a": {"kernel": "best"}}}})"};
  for (std::size_t size = 0; size + 2 < good.size(); ++size) damaged.push_back(good.substr(0, size));
  // As deep as would overflow the stack where such a value is destroyed or written again.
  damaged.push_back(R"({"version": 1, "choices": {}, "deep": )" + std::string(100'000, '[') +
                    std::string(100'000, ']') + "}");
  damaged.push_back(good + std::string(1, '\0'));
  for (const std::string& content : damaged) {
    std::ofstream(file_, std::ios::trunc) << content;
    count = 0;
    EXPECT_FALSE(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return builtin(&count); })->library);
    EXPECT_EQ(count, 1) << content.substr(0, 1000);
    EXPECT_EQ(json::parse(read_file(file_))["choices"]["GPU"]["a"]["kernel"], "own")
        << content.substr(0, 1000);
  }
}

TEST_F(ChoiceCacheTest, MeasuresNothingThatItCannotKeep) {
  int count = 0;
  fs::create_directories(root_);
  std::ofstream(root_ / "new") << "a file where the directory should be";
  EXPECT_EQ(ChoiceCache(file_).find_or_measure("GPU", "a", [&] { return library(&count); }), std::nullopt);
  EXPECT_EQ(ChoiceCache({}).find_or_measure("GPU", "a", [&] { return library(&count); }), std::nullopt);
  EXPECT_EQ(count, 0);
}

TEST_F(ChoiceCacheTest, KeepsTheChoiceOfTheFirstOfSeveralProcesses) {
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
      // The processes disagree; the choice that is kept counts for all.
      const auto choice = cache.find_or_measure("GPU", std::to_string(task), [&]() -> std::optional<Choice> {
        ::usleep(2000);
        std::ofstream(root_ / "measured", std::ios::app) << task << "\n";
        return Choice{p % 2 == 0, 1.0 + p, 2};
      });
      const auto again = cache.find_or_measure("GPU", std::to_string(task), [] { return std::nullopt; });
      good = good && choice && again && choice->builtin_seconds == again->builtin_seconds;
      cache.find_or_measure("GPU", "task of process " + std::to_string(p), [] { return Choice{}; });
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

}  // namespace
}  // namespace sweep::cuda
