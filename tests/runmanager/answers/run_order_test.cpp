#include "runmanager/answers/source_runs.h"

#include "tests/runmanager/answers/made_runs.h"

namespace sweep::run_order_test {

std::vector<RunRecord> some_runs() {
  const std::tuple<const char*, double, double> given[] = {
      {"a", 0.1, 0.5}, {"b", 1e-3, 0.9}, {"c", 0.02, std::nan("")}, {"d", 10, 0.7}};
  std::vector<RunRecord> runs;
  for (const auto& [name, lr, accuracy] : given) {
    RunRecord run = testing::made_run({{"lr", lr}, {"optimizer", std::string(name)}}, "cpu", lr).record;
    run.name = name;
    run.metrics["test_accuracy"] = accuracy;
    runs.push_back(run);
  }
  return runs;
}

std::vector<std::string> order_by(const std::string& key) {
  std::vector<RunRecord> runs = some_runs();
  runs[0].params.pop_back();
  sort_runs(runs, key, default_goals(runs));
  std::vector<std::string> names;
  for (const RunRecord& run : runs) names.push_back(run.name);
  return names;
}

TEST(SortRuns, ByAParameterUpwardsAndByAMetricTheBestFirst) {
  EXPECT_THAT(order_by("lr"), ElementsAre("b", "c", "a", "d"));
  EXPECT_THAT(order_by("optimizer"), ElementsAre("b", "c", "d", "a")) << "a has none";
  EXPECT_THAT(order_by("test_accuracy"), ElementsAre("b", "d", "a", "c")) << "c is not a number";
  EXPECT_THAT(order_by("epoch_seconds"), ElementsAre("b", "c", "a", "d"));
  EXPECT_THAT(order_by("loss"), ElementsAre("a", "b", "c", "d")) << "all are equal";
}

TEST(SortRuns, ByAMetricWithTheNameOfAParameterAndByTheParameter) {
  std::vector<RunRecord> runs = some_runs();
  for (RunRecord& run : runs) run.params.emplace_back("epoch_seconds", "not " + run.name);
  sort_runs(runs, "epoch_seconds", default_goals(runs));
  EXPECT_EQ(runs[0].name, "b") << "the shortest";
  sort_runs(runs, "param.epoch_seconds", default_goals(runs));
  EXPECT_EQ(runs[0].name, "a");
}

TEST(SortRuns, ByTheMetricOfAGoalAsThatGoalSays) {
  std::vector<RunRecord> runs = some_runs();
  const Goals goals = {asked_goal("test_accuracy", false), asked_goal("epoch_seconds", true)};
  for (const char* key : {"test_accuracy", "epoch_seconds"}) {
    sort_runs(runs, key, goals);
    EXPECT_EQ(runs[0].name, std::string(key) == "test_accuracy" ? "a" : "d");
  }
}

TEST(SortRuns, NamesWhatThereIsToSortBy) {
  EXPECT_THAT(message_of<ConfigError>([] { order_by("test_acuracy"); }),
              AllOf(HasSubstr("lr, optimizer"), HasSubstr("did you mean \"test_accuracy\"?")));
  EXPECT_THAT(message_of<ConfigError>([] { order_by("test_acc"); }),
              HasSubstr("did you mean \"test_accuracy\"?"));
}

}  // namespace sweep::run_order_test
