// The program's `resume`, and the line that says how to go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/idx_files.h"
#include "tests/support/program.h"
#include "tests/support/sweep_folder.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Resume : public ::testing::Test {
 protected:
  Resume() {
    constexpr std::uint32_t kSamples = 40;
    std::string labels;
    for (std::uint32_t i = 0; i < kSamples; ++i) labels += static_cast<char>(i % 10);
    folder_.write("sweeps/data/train-images-idx3-ubyte",
                  test::idx({kSamples, 28, 28}, std::string(kSamples * 28 * 28, '\x40')));
    folder_.write("sweeps/data/train-labels-idx1-ubyte", test::idx({kSamples}, labels));
    folder_.write("sweeps/net.json", read_file(folder_.path() / "net.json"));
    folder_.write("sweeps/s.json",
                  R"({"dataset": {"name": "own", "path": "data"}, "network": "net.json", "batch_size": 20,
                      "params": {"lr": [0.1, 0.01]}})");
  }

  Finished run(const std::vector<std::string>& words, const std::string& below = "") const {
    return run_program(words, folder_.path() / below);
  }

  nlohmann::json results(const std::string& sweep) const {
    return nlohmann::json::parse(read_file(folder_.path() / sweep / "results.json"));
  }

  SweepFolder folder_;
};

TEST_F(Resume, NeedsTheDirectoryOnly) {
  ASSERT_EQ(run({"sweeps/s.json", "epochs=2", "--quiet"}).code, 0);
  const std::string whole = read_file(folder_.path() / "runs/s/lr=0.01/checkpoint.safetensors");
  const nlohmann::json first = results("runs/s");
  fs::remove(folder_.path() / "sweeps/s.json");
  fs::remove(folder_.path() / "sweeps/net.json");
  fs::remove_all(folder_.path() / "runs/s/lr=0.01");
  for (const auto& [directory, below] : {std::pair("runs/s/", ""), {".", "runs/s"}, {"s", "runs"}}) {
    const Finished finished = run({"resume", directory}, below);
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_FALSE(fs::exists(folder_.path() / "runs/s/runs"));
    const nlohmann::json again = results("runs/s");
    EXPECT_EQ(again["sweep"], first["sweep"]);
    ASSERT_EQ(again["runs"].size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(again["runs"][i]["name"], first["runs"][i]["name"]);
      EXPECT_EQ(again["runs"][i]["epochs"][1]["loss"], first["runs"][i]["epochs"][1]["loss"]);
      EXPECT_EQ(again["runs"][i]["epochs"][1]["epoch"], 2);
    }
  }
  EXPECT_THAT(run({"resume", "runs/s"}).err, HasSubstr("2 finished runs kept"));
}

TEST_F(Resume, TakesOverrides) {
  ASSERT_EQ(run({"sweeps/s.json", "--quiet"}).code, 0);
  EXPECT_EQ(run({"resume", "runs/s", "epochs=2", "lr=0.1,0.01,0.001", "--quiet"}).code, 0);
  const nlohmann::json again = results("runs/s");
  ASSERT_EQ(again["runs"].size(), 3u);
  for (const nlohmann::json& one : again["runs"]) EXPECT_EQ(one["epochs"].back()["epoch"], 2);
}

TEST_F(Resume, WithFewerValuesShowStillTellsOfTheOtherRuns) {
  ASSERT_EQ(run({"sweeps/s.json", "--quiet"}).code, 0);
  EXPECT_THAT(run({"show", "runs/s"}).out, ::testing::Not(HasSubstr("no longer has")));
  ASSERT_EQ(run({"sweeps/s.json", "lr=0.1", "--quiet"}).code, 0);
  EXPECT_THAT(run({"show", "runs/s"}).out,
              HasSubstr("1 more run is here that the sweep's file no longer has: lr=0.01"));
}

TEST_F(Resume, IsARunOfTheDirectory) {
  ASSERT_EQ(run({"sweeps/s.json", "--quiet", "--logdir", "there"}).code, 0);
  EXPECT_EQ(run({"there/s", "epochs=2", "--quiet"}).code, 0);
  EXPECT_EQ(results("there/s")["runs"][0]["epochs"].back()["epoch"], 2);
  EXPECT_EQ(run({"resume", "there/s", "--fresh", "--quiet"}).code, 0);
  EXPECT_EQ(results("there/s-2")["sweep"], "s-2");
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
  EXPECT_THAT(run({"plan", "there/s"}).out, HasSubstr("s: 2 runs: 2 kept\n"));
}

TEST_F(Resume, ADryRunPrintsThePlanWhateverOptionsTrainingHas) {
  const Finished plan = run({"plan", "sweeps/s.json", "lr=0.1"});
  const Finished dry =
      run({"sweeps/s.json", "lr=0.1", "--dry-run", "--timeout", "5", "--retry=1", "--strict"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_EQ(dry.out, plan.out);
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
  ASSERT_EQ(run({"sweeps/s.json", "--quiet"}).code, 0);
  EXPECT_THAT(run({"resume", "runs/s", "epochs=3", "--dry-run"}).out, HasSubstr("s: 2 runs: 2 continued\n"));
}

TEST_F(Resume, GoesOnInADirectoryThatIsCalledOtherwiseThanTheSweep) {
  ASSERT_EQ(run({"sweeps/s.json", "--quiet"}).code, 0);
  ASSERT_EQ(run({"sweeps/s.json", "--quiet", "--fresh"}).code, 0);
  EXPECT_EQ(run({"resume", "runs/s-2", "--quiet"}).code, 0);
  EXPECT_EQ(results("runs/s-2")["sweep"], "s-2");
  EXPECT_FALSE(fs::exists(folder_.path() / "runs/s-3"));
}

TEST_F(Resume, RefusesWhatIsNoDirectoryOfASweep) {
  EXPECT_THAT(run({"resume", "runs/none"}).err, HasSubstr("runs/none: is not there; want the directory"));
  const Finished finished = run({"resume", "sweeps"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("sweeps: has no sweep.json; want the directory"));
}

TEST_F(Resume, TheLineThatSaysHowToGoOnCanBeTyped) {
  const std::string program = program_path(SWEEP_PROGRAM);
  const std::string words = " sweeps/s.json epochs=1000000 --max-time 0.2";
  const Finished alone = run_program("/bin/sh", {"-c", program + words}, folder_.path());
  EXPECT_EQ(alone.code, 75);
  EXPECT_THAT(alone.err, HasSubstr("To go on: " + program + words + "\n"));
  const Finished script =
      run_program("/bin/sh", {"-c", "SWEEP_TYPED_AS=tools/run " + program + words}, folder_.path());
  EXPECT_THAT(script.err, HasSubstr("To go on: tools/run" + words + "\n"));
}

}  // namespace
}  // namespace sweep::testing
