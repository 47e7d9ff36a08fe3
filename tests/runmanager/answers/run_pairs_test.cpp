#include "runmanager/answers/run_pairs.h"

#include <span>

#include "runmanager/answers/run_order.h"
#include "tests/runmanager/answers/made_runs.h"

namespace sweep::run_pairs_test {

std::vector<SourceRun> devices_and_rates() {
  return {made_run({{"lr", 0.1}, {"device", std::string("cpu")}}, "cpu", 2),
          made_run({{"lr", 0.1}, {"device", std::string("cuda")}}, "cuda:0", 1),
          made_run({{"lr", 0.01}, {"device", std::string("cpu")}}, "cpu", 2),
          made_run({{"lr", 0.01}, {"device", std::string("cuda")}}, "cuda:0", 1)};
}

TEST(RunPairs, AreOfRunsThatDifferOnlyInTheKey) {
  const std::vector<SourceRun> runs = devices_and_rates();
  const RunPairs pairs = pair_runs(runs, "");
  EXPECT_EQ(pairs.key, "device");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_EQ(pairs.values[0].base, "cpu");
  EXPECT_EQ(pairs.values[0].other, "cuda:0");
  ASSERT_THAT(pairs.values[0].pairs, SizeIs(2));
  EXPECT_THAT(pairs.values[0].pairs[0].settings,
              ElementsAre(std::pair<std::string, std::string>("lr", "0.1")));
  EXPECT_EQ(pairs.values[0].pairs[1].base, &runs[2]);
  EXPECT_EQ(pairs.values[0].pairs[1].other, &runs[3]);
  EXPECT_THAT(pairs.alone, IsEmpty());
}

TEST(RunPairs, EveryValueIsPairedWithTheFirst) {
  const std::vector<SourceRun> runs = {made_run({{"optimizer", std::string("sgd")}}, "cpu", 1),
                                       made_run({{"optimizer", std::string("adam")}}, "cpu", 1),
                                       made_run({{"optimizer", std::string("rmsprop")}}, "cpu", 1)};
  const RunPairs pairs = pair_runs(runs, "optimizer");
  ASSERT_THAT(pairs.values, SizeIs(2));
  EXPECT_EQ(pairs.values[1].base, "sgd");
  EXPECT_EQ(pairs.values[1].other, "rmsprop");
}

TEST(RunPairs, UnfinishedRunsAndThoseWithoutAPartnerAreNamed) {
  std::vector<SourceRun> runs = devices_and_rates();
  runs[3].record.status = RunStatus::kSkipped;
  const RunPairs pairs = pair_runs(runs, "device");
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(1));
  EXPECT_THAT(pairs.alone, ElementsAre(&runs[2]));
  EXPECT_THAT(pairs.unfinished, ElementsAre(&runs[3]));
}

TEST(RunPairs, SweepsWithPartsOfTheComparisonArePairedAcross) {
  std::vector<SourceRun> runs = devices_and_rates();
  runs[0].source = runs[2].source = "runs/here";
  runs[1].source = runs[3].source = "runs/there";
  EXPECT_THAT(pair_runs(runs, "device").values[0].pairs, SizeIs(2));
}

TEST(RunPairs, RunsOfAnImportedSweepHaveNoDeviceAndArePairedWithThoseThatHave) {
  std::vector<SourceRun> runs = {made_run({{"lr", 0.1}}, "cpu", 1), made_run({{"lr", 0.2}}, "cpu", 1),
                                 made_run({{"lr", 0.1}}, "", 1, {1.0}, "runs/imported"),
                                 made_run({{"lr", 0.2}}, "", 1, {1.0}, "runs/imported")};
  for (SourceRun& run : std::span(runs).first(2)) run.record.config["repeat"] = 0;
  const RunPairs pairs = pair_runs(runs, std::string(kSweepKey));
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(2));
  EXPECT_THAT(pairs.alone, IsEmpty());
}

TEST(RunPairs, SweepsWithAllOfTheComparisonArePairedWithin) {
  std::vector<SourceRun> runs = devices_and_rates();
  for (SourceRun run : devices_and_rates()) {
    run.source = "runs/again";
    runs.push_back(run);
  }
  const RunPairs pairs = pair_runs(runs, "device");
  ASSERT_THAT(pairs.values[0].pairs, SizeIs(4));
  for (const RunPair& pair : pairs.values[0].pairs) EXPECT_EQ(pair.base->source, pair.other->source);
  EXPECT_THAT(pair_runs(runs, "sweep").values[0].pairs, SizeIs(4));
}

TEST(RunPairs, AConstantIsReadFromTheConfigurationOfASweepThatDoesNotVaryIt) {
  std::vector<SourceRun> runs = {made_run({{"momentum", 0.5}}, "cpu", 1, {1.0}, "runs/a"),
                                 made_run({}, "cpu", 1, {1.0}, "runs/b")};
  runs[1].record.config = {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}};
  EXPECT_EQ(setting_text(runs[1], "momentum"), "0.9");
  EXPECT_EQ(setting_text(runs[1], "optimizer"), "sgd");
  const RunPairs pairs = pair_runs(runs, "momentum");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_EQ(pairs.values[0].other, "0.9");
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(1));
}

TEST(RunPairs, TellWhichSettingsOnlyOneValueHas) {
  const RunPairs pairs = pair_runs({made_run({{"optimizer", "sgd"}, {"momentum", 0.0}}, "cpu", 1),
                                    made_run({{"optimizer", "sgd"}, {"momentum", 0.9}}, "cpu", 1),
                                    made_run({{"optimizer", "adam"}}, "cpu", 1)},
                                   "optimizer");
  EXPECT_TRUE(pairs.values.at(0).pairs.empty());
  EXPECT_EQ(pairs.values.at(0).of_one, (std::vector<std::string>{"momentum"}));
}

TEST(RunPairs, WhereSeveralKeysVaryOneHasToBeNamed) {
  std::vector<SourceRun> runs = {made_run({{"lr", 0.1}, {"shuffle", true}}, "cpu", 1),
                                 made_run({{"lr", 0.2}, {"shuffle", false}}, "cpu", 1)};
  EXPECT_THAT(test::message_of<ConfigError>([&] { pair_runs(runs, ""); }), HasSubstr("--by: lr, shuffle"));
  EXPECT_THAT(test::message_of<ConfigError>([&] { pair_runs(runs, "shufle"); }),
              HasSubstr("Did you mean \"shuffle\"?"));
  runs.pop_back();
  EXPECT_THAT(test::message_of<ConfigError>([&] { pair_runs(runs, ""); }), HasSubstr("nothing to compare"));
}

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

}  // namespace sweep::run_pairs_test
