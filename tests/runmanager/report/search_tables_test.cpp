#include "runmanager/report/setting_tables.h"

#include "runmanager/records/recorded_config.h"
#include "runmanager/report/chart_specs.h"
#include "tests/runmanager/answers/made_runs.h"
#include "tests/runmanager/report/chart_column.h"
#include "tests/support/test.h"

namespace sweep::search_tables_test {

using Json = nlohmann::ordered_json;
using test::column;
using testing::made_run;

const Goals kLowestLoss = {asked_goal("loss", false)};

ReportData searched(const std::vector<double>& losses) {
  std::vector<SourceRun> runs;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Params params = {{"lr", 0.001 * static_cast<double>(i + 1)}};
    if (i % 2 == 1) params.emplace_back("momentum", 0.1 * static_cast<double>(i));
    runs.push_back(made_run(std::move(params), "cpu", 1, {losses[i]}));
  }
  return report_data_of(std::move(runs), kLowestLoss, true);
}

TEST(SearchTables, HaveTheBestSoFarOfWholeTrials) {
  ReportData data = searched({5, 3, 4, 1, 2});
  data.records[3].status = RunStatus::kPruned;
  data.records[4].status = RunStatus::kRunning;
  const Trials trials = trials_of(data);
  EXPECT_THAT(column(trials.rows, "trial"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(column(trials.rows, "best"), ElementsAre(5, 3, 3, 3));
  EXPECT_THAT(column(trials.rows, "ended"), ElementsAre("completed", "completed", "completed", "pruned"));
  ASSERT_EQ(trials.axes.size(), 2u);
  EXPECT_EQ(trials.axes[1].title, "momentum");
  EXPECT_THAT(column(trials.rows, "axis1"), ElementsAre(Json(), 0.1, Json(), 0.1 * 3));
}

TEST(SearchTables, AreOfSearchesAlone) {
  ReportData grid = report_data_of({made_run({{"lr", 0.1}}, "cpu", 1), made_run({{"lr", 0.2}}, "cpu", 1)});
  EXPECT_THAT(trials_of(grid).rows.rows, IsEmpty());
  EXPECT_THAT(importances_rows(grid).rows, IsEmpty());
  EXPECT_EQ(best_command(grid), "");
}

TEST(SearchTables, CutChartsThatAFewTrialsWouldStretch) {
  std::vector<double> losses(30);
  for (std::size_t i = 0; i < losses.size(); ++i) losses[i] = 1 + 0.01 * static_cast<double>(i);
  EXPECT_FALSE(trials_of(searched(losses)).worst_shown.has_value());
  EXPECT_FALSE(trials_of(searched({5, 3, 4, 100})).worst_shown.has_value());
  EXPECT_NEAR(trials_of(searched({5, 3, 4, 1e9})).worst_shown.value(), 3 + 1.2 * 2, 1e-9);
  losses[7] = 1e9;
  EXPECT_NEAR(trials_of(searched(losses)).worst_shown.value(), 1 + 1.2 * 0.28, 1e-9);
}

TEST(SearchTables, HaveAChartPerSetting) {
  std::vector<std::string> ids;
  for (const Chart& chart : charts_of(searched({5, 3, 4, 1, 2})).charts) ids.push_back(chart.id);
  EXPECT_THAT(ids, ElementsAre("curves-loss", "curves-accuracy", "progress", "importances", "slice-0",
                               "slice-1", "coordinates"));
}

TEST(SearchTables, ShowHowTheSettingsOfAPopulationChange) {
  ReportData data = searched({5, 3, 4, 1});
  EXPECT_THAT(schedules_of(data).rows.rows, IsEmpty());
  for (RunRecord& record : data.records) record.epochs = {EpochRecord(2), EpochRecord(6)};
  data.records[0].epochs.pop_back();
  data.records[0].status = RunStatus::kPruned;
  data.records[1].config[std::string(kLineageKey)] =
      to_json(Lineage{{"first", 2, {{"lr", 0.1}, {"optimizer", "sgd"}}}, {"second", 4, {{"lr", 0.2}}}});
  const Schedules schedules = schedules_of(data);
  ASSERT_EQ(schedules.axes.size(), 2u) << "lr, and momentum, which the others do not have";
  EXPECT_EQ(schedules.axes[0].title, "lr");
  EXPECT_THAT(column(schedules.rows, "run"), ElementsAre(0, 0, 1, 1, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(column(schedules.rows, "epoch"), ElementsAre(0, 2, 0, 2, 4, 6, 0, 6, 0, 6));
  EXPECT_THAT(column(schedules.rows, "axis0"),
              ElementsAre(0.001, 0.001, 0.1, 0.2, 0.002, 0.002, 0.003, 0.003, 0.004, 0.004));
  EXPECT_THAT(column(schedules.rows, "ended"), Contains("pruned").Times(2));
}

TEST(BestCommand, HasTheValuesThatTheRunHad) {
  SourceRun run =
      made_run({{"lr", 0.5}, {"momentum", 0.9}, {"optimizer", "sgd"}, {"network", "mlp"}}, "cpu", 1);
  run.record.config = {{"lr", 0.5},
                       {"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}},
                       {"network", {{"name", "mlp"}, {"layers", Json::array()}}}};
  ReportData data = report_data_of({run}, kLowestLoss, true);
  data.directories = {"runs/a b"};
  data.files = {Json::object()};
  data.title = "a b";
  EXPECT_EQ(best_command(data),
            "sweep 'runs/a b/sweep.json' lr=0.5 momentum=0.9 "
            R"(optimizer=sgd 'network={"name":"mlp","layers":[]}' )"
            "search.trials=1 'name=a b-best'");
}

TEST(BestCommand, KeepsTextsOfProgramsTexts) {
  SourceRun run =
      made_run({{"x.y", 0.5}, {"mode", "fast"}, {"id", "007"}, {"flag", "true"}, {"list", "a,b"}}, "cpu", 1);
  run.record.config = {
      {"command", {"true"}},
      {"params", {{"x.y", 0.5}, {"mode", "fast"}, {"id", "007"}, {"flag", "true"}, {"list", "a,b"}}}};
  ReportData data = report_data_of({run}, kLowestLoss, true);
  data.directories = {"runs/p"};
  data.files = {Json::object()};
  data.title = "p";
  ReportData at_points = data;
  at_points.files = {{{"search", {{"points", Json::array()}}}}};
  EXPECT_THAT(
      best_command(at_points),
      HasSubstr(R"(search.points=[{"x.y":0.5,"mode":"fast","id":"007","flag":"true","list":"a,b"}])"));
  ReportData population = data;
  population.records[0].config["lineage"] = Json::array();
  EXPECT_EQ(best_command(population), "") << "settings of its last epochs only";
  EXPECT_EQ(best_command(data),
            "sweep runs/p/sweep.json params.x.y=0.5 params.mode=fast params.id=007 'params.flag=\"true\"' "
            "'params.list=\"a,b\"' search.trials=1 name=p-best");
}

}  // namespace sweep::search_tables_test
