// What `sweep plan` says of each run.
#include "runmanager/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using ::testing::HasSubstr;
using testing::SweepFolder;

// 28·28·32 + 32 + 32·10 + 10 weights and biases.
constexpr std::size_t kParameters = 25450;

SweepPlan plan_of(const SweepFolder& folder, const std::string& settings) {
  const Sweep sweep = folder.load(SweepFolder::with(settings));
  return make_plan(
      sweep,
      [](const DatasetSpec&) {
        return DataSizes{{1, 28, 28}, 10, 1050};
      },
      [](const Device& device, Precision) {
        return device.type == DeviceType::kCuda ? std::optional<std::string>("no such thing here")
                                                : std::nullopt;
      });
}

TEST(Plan, SaysWhereARunTrainsOrWhyItIsSkipped) {
  const SweepFolder folder;
  const SweepPlan plan = plan_of(folder, R"("params": {"device": ["cuda", "cpu"]})");
  EXPECT_EQ(plan.runs.at(0).skip, "no such thing here");
  EXPECT_EQ(plan.runs.at(1).device, "cpu");
  EXPECT_FALSE(plan.runs.at(1).skip);
  EXPECT_THAT(plan_text(plan), HasSubstr("skipped: no such thing here\n"));
  EXPECT_THAT(plan_text(plan), HasSubstr("s: 2 runs, 1 of them skipped\n"));
}

TEST(Plan, CountsWeightsStepsAndMemory) {
  const SweepFolder folder;
  const SweepPlan plan =
      plan_of(folder, R"("optimizer": "sgd", "params": {"momentum": [0, 0.9], "batch_size": [100, 1000]})");
  EXPECT_EQ(plan.runs.at(0).parameter_count, kParameters);
  EXPECT_EQ(plan.runs.at(0).steps_per_epoch, 11u);  // 10 whole batches and one of 50.
  EXPECT_EQ(plan.runs.at(1).steps_per_epoch, 2u);
  EXPECT_EQ(plan.runs.at(0).memory_bytes, 2 * 4 * kParameters);  // Weights and gradients.
  EXPECT_EQ(plan.runs.at(2).memory_bytes, 3 * 4 * kParameters);  // And the momentum buffer.
  EXPECT_EQ(plan_of(folder, R"("optimizer": "adam")").runs.at(0).memory_bytes, 4 * 4 * kParameters);
}

TEST(Plan, JsonHasEveryRunAndWhatIsLeftOut) {
  const SweepFolder folder;
  const auto json = plan_json(plan_of(folder, R"("params": {"lr": [0.5, 0.25]}, "exclude": [{"lr": 0.25}])"));
  EXPECT_EQ(json["sweep"], "s");
  ASSERT_EQ(json["runs"].size(), 1u);
  EXPECT_EQ(json["runs"][0]["name"], "lr=0.5");
  EXPECT_EQ(json["runs"][0]["params"]["lr"], 0.5);
  EXPECT_TRUE(json["runs"][0]["skip"].is_null());
  EXPECT_EQ(json["runs"][0]["parameters"], kParameters);
  ASSERT_EQ(json["excluded"].size(), 1u);
  EXPECT_EQ(json["excluded"][0]["name"], "lr=0.25");
  EXPECT_THAT(json["excluded"][0]["reason"].get<std::string>(), HasSubstr("exclude.0: lr is 0.25"));
}

}  // namespace
}  // namespace sweep
