#include "runmanager/records/results.h"

#include <gtest/gtest.h>

#include "runmanager/records/run_record_json.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

RunRecord trained(std::optional<double> communication_seconds) {
  RunRecord run;
  run.name = "run";
  run.status = RunStatus::kCompleted;
  run.params = {{"lr", 0.1}};
  run.epochs = {{1, {{"loss", 1}, {"communication_seconds", communication_seconds}}}};
  return run;
}

TEST(ResultColumns, HaveTheTimeThatDevicesWaitedForEachOtherWhereTheyDid) {
  const std::vector<RunRecord> runs = {trained(0.25), trained({})};
  const auto rows = parse_csv(results_csv(runs, {"lr"}));
  EXPECT_EQ(rows[0][12], "images_per_second");
  EXPECT_EQ(rows[0][13], "communication_seconds");
  EXPECT_EQ(rows[0][14], "lr");
  EXPECT_EQ(rows[1][13], "0.25");
  EXPECT_EQ(rows[2][13], "");
  const auto epoch_of = [json = results_json(runs, "s")](int run) {
    return json["runs"][static_cast<std::size_t>(run)]["epochs"][0];
  };
  EXPECT_EQ(epoch_of(0)["communication_seconds"], 0.25);
  EXPECT_FALSE(epoch_of(1).contains("communication_seconds"));
  EXPECT_EQ(run_record_from_json(to_json(runs[0]), "here").epochs[0]["communication_seconds"], 0.25);
}

TEST(ResultColumns, OfOneDeviceAreThoseOfEveryTable) {
  const auto rows = parse_csv(results_csv({trained({})}, {"lr"}));
  EXPECT_EQ(rows[0][12], "images_per_second");
  EXPECT_EQ(rows[0][13], "lr");
}

}  // namespace
}  // namespace sweep
