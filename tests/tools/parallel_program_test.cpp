// Several devices and several processes that train one network, as the program does it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/mpi_program.h"

namespace sweep::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ParallelProgram : public ::testing::Test {
 protected:
  ParallelProgram() { write_shared_training(folder_, "cpu"); }

  Finished run(std::vector<std::string> words) const { return run_program(words, folder_.path()); }

  // Loss and accuracy of every epoch.
  std::vector<json> values(const std::string& sweep) const {
    const json record = json::parse(read_file(folder_.path() / "runs" / sweep / "run/run.json"));
    std::vector<json> all;
    for (const json& epoch : record.at("epochs"))
      all.push_back({epoch.at("loss"), epoch.at("accuracy"), epoch.at("validation_loss")});
    return all;
  }

  SweepFolder folder_;
};

TEST_F(ParallelProgram, ARunGoesOnWithAnyNumberOfDevicesToTheSameBits) {
  ASSERT_EQ(run({"s.json", "epochs=4", "name=one", "--quiet"}).code, 0);
  const char* devices[] = {"parallel.data=4", "parallel.data=2",
                           R"(parallel={"pipeline": {"stages": 2, "micro_batches": 3}})",
                           R"(parallel={"data": 3, "model": {"out": "cpu:1", "*": "cpu:0"}})"};
  for (std::size_t i = 0; i < std::size(devices); ++i) {
    const Finished finished = run(
        {"s.json", "epochs=" + std::to_string(i + 1), "name=several", devices[i], "--quiet", "--threads=4"});
    ASSERT_EQ(finished.code, 0) << finished.err;
  }
  EXPECT_EQ(values("several"), values("one"));
  EXPECT_EQ(values("one").size(), 4u);
}

TEST_F(ParallelProgram, SaysHowLongDevicesWaitedForEachOther) {
  ASSERT_EQ(run({"s.json", "parallel.data=2", "--quiet"}).code, 0);
  const json record = json::parse(read_file(folder_.path() / "runs/s/run/run.json"));
  EXPECT_GT(record.at("epochs").at(0).at("communication_seconds").get<double>(), 0);
  ASSERT_EQ(run({"s.json", "name=alone", "--quiet"}).code, 0);
  EXPECT_FALSE(json::parse(read_file(folder_.path() / "runs/alone/run/run.json"))
                   .at("epochs")
                   .at(0)
                   .contains("communication_seconds"));
}

TEST_F(ParallelProgram, WithAStageThatTheNetworkDoesNotHaveIsRefused) {
  const Finished finished = run({"s.json", R"(parallel={"model": {"fc1": "cpu:1"}})"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("no layer fits \"fc1\""));
}

TEST_F(ParallelProgram, InSeveralProcessesGivesTheSameBits) {
  if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty()) GTEST_SKIP() << reason;
  ASSERT_EQ(run({"s.json", "epochs=2", "name=one", "--quiet"}).code, 0);
  for (const int ranks : {2, 3}) {
    const std::string name = "processes-" + std::to_string(ranks);
    const Finished finished = run_mpi(
        ranks, {"s.json", "epochs=2", "name=" + name, "parallel.data=" + std::to_string(ranks), "--quiet"},
        folder_.path());
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(values(name), values("one"));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs" / (name + "-2"))) << "one rank alone writes";
  }
}

TEST_F(ParallelProgram, InMoreProcessesThanDevicesSaysWhatIsAllowed) {
  if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty()) GTEST_SKIP() << reason;
  const Finished finished = run_mpi(3, {"s.json", "parallel.data=2"}, folder_.path());
  EXPECT_THAT(finished.err + finished.out, HasSubstr("with 3 MPI ranks, want 3 or a multiple of it"));
}

}  // namespace
}  // namespace sweep::testing
