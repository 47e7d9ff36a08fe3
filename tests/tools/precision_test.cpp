// bf16 through the built program and its workers: what `devices`, `plan` and runs say where the CPU has it
// and where not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/environment.h"
#include "tests/support/event_files.h"
#include "tests/support/program.h"
#include "tests/support/quarters.h"

namespace sweep::testing {
namespace {

using nlohmann::json;
using test::Environment;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kVariable = "SWEEP_BF16";
constexpr const char* kReason = "precision bf16: the environment variable SWEEP_BF16 turns it off";

class PrecisionProgram : public ::testing::Test {
 protected:
  PrecisionProgram() { write_quarters(directory_.path()); }

  Finished sweep(std::vector<std::string> words) const { return run_program(words, directory_.path()); }
  Finished train(const std::string& precisions, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words = {"quarters.json",           "batch_size=20", "num_workers=0", "epochs=2",
                                      "precision=" + precisions, "--quiet",       "--jobs",        "2"};
    words.insert(words.end(), options.begin(), options.end());
    return sweep(words);
  }
  json runs() const {
    return json::parse(read_file(directory_.path() / "runs/quarters/results.json")).at("runs");
  }

  tbwriter::TemporaryDirectory directory_;
};

TEST_F(PrecisionProgram, DevicesSaysWhetherTheCpuHasBf16) {
  {
    const Environment off(kVariable, "off");
    EXPECT_THAT(sweep({"devices"}).out, HasSubstr(std::string(kReason) + "\n"));
    EXPECT_EQ(json::parse(sweep({"devices", "--json"}).out).at("bf16_unavailable"), kReason);
  }
  const Environment emulated(kVariable, "emulate");
  EXPECT_THAT(sweep({"devices"}).out, Not(HasSubstr(kReason)));
  const json devices = json::parse(sweep({"devices", "--json"}).out);
  EXPECT_EQ(devices.at("devices").at(0).at("precisions"), json::array({"fp32", "bf16"}));
  EXPECT_TRUE(devices.at("bf16_unavailable").is_null());
}

TEST_F(PrecisionProgram, RunsAreSkippedWithTheReasonOrFailWhereThatIsWanted) {
  const Environment off(kVariable, "off");
  EXPECT_THAT(sweep({"plan", "quarters.json", "precision=fp32,bf16"}).out,
              HasSubstr(std::string("skipped: ") + kReason));
  EXPECT_EQ(train("fp32,bf16").code, 0);
  EXPECT_EQ(runs().at(0).at("status"), "completed");
  EXPECT_EQ(runs().at(1).at("status"), "skipped");
  EXPECT_EQ(runs().at(1).at("error"), kReason);
  EXPECT_EQ(train("fp32,bf16", {"--strict", "--fresh"}).code, 1);
}

TEST_F(PrecisionProgram, WorkersTrainWithTheRunsPrecision) {
  const Environment emulated(kVariable, "emulate");
  const Finished finished = train("fp32,bf16", {"--strict"});
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  const json trained = runs();
  EXPECT_EQ(trained.at(1).at("params").at("precision"), "bf16");
  EXPECT_NE(trained.at(0).at("epochs").at(1).at("loss"), trained.at(1).at("epochs").at(1).at("loss"));
  EXPECT_EQ(sweep({"verify", "runs/quarters"}).code, 0);
}

TEST_F(PrecisionProgram, AGpuHasNoBf16) {
  const Environment emulated(kVariable, "emulate");
  EXPECT_EQ(train("bf16", {"device=cuda"}).code, 0);
  EXPECT_EQ(runs().at(0).at("status"), "skipped");
}

}  // namespace
}  // namespace sweep::testing
