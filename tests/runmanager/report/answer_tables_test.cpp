#include <nlohmann/json.hpp>

#include "runmanager/report/answer_tables.h"

#include "runmanager/records/recorded_config.h"
#include "runmanager/report/chart_specs.h"
#include "runmanager/report/page_parts.h"
#include "runmanager/report/run_pictures.h"
#include "runmanager/report/setting_tables.h"
#include "tbwriter/summary_writer.h"
#include "tests/runmanager/answers/made_runs.h"

namespace sweep::answer_tables_test {

// The cells of a column, one per row.
std::vector<nlohmann::ordered_json> column(const ChartTable& table, const std::string& name) {
  const auto at = std::ranges::find(table.columns, name) - table.columns.begin();
  std::vector<nlohmann::ordered_json> cells;
  for (const auto& row : table.rows) cells.push_back(row.at(static_cast<std::size_t>(at)));
  return cells;
}

using Json = nlohmann::ordered_json;

SourceRun graded(double lr, std::int64_t size, const std::string& device, double accuracy, double seconds) {
  SourceRun run = made_run({{"lr", lr}, {"batch_size", size}}, device, seconds, {1.0, 0.5});
  run.record.name += std::to_string(lr) + std::to_string(size);
  for (EpochRecord& epoch : run.record.epochs) epoch.set("validation_accuracy", accuracy);
  return run;
}

TEST(LevelsTable, HasTheSettingThatChangesMostFirst) {
  const ReportData data = report_data_of({graded(0.1, 32, "cpu", 0.5, 1), graded(0.1, 64, "cpu", 0.52, 1),
                                          graded(0.01, 32, "cpu", 0.9, 1), graded(0.01, 64, "cpu", 0.92, 1)});
  const ChartTable levels = levels_table(data);
  EXPECT_EQ(column(levels, "setting"),
            (std::vector<Json>{"lr", "lr", "lr", "batch_size", "batch_size", "batch_size"}));
  EXPECT_EQ(column(levels, "level"), (std::vector<Json>{false, true, true, false, true, true}));
  EXPECT_EQ(column(levels, "best"), (std::vector<Json>{false, false, true, false, false, false}))
      << "the batch size has 0.2% of the differences, which is no reason to choose";
  EXPECT_EQ(column(levels, "text"), (std::vector<Json>{"", "51.00%", "91.00%", "", "70.00%", "72.00%"}));
  EXPECT_NEAR(column(levels, "mean")[2].get<double>(), 0.91, 1e-12);
  EXPECT_NEAR(column(levels, "middle")[2].get<double>(), 0.71, 1e-12);
}

TEST(LevelsTable, IsEmptyIfTheGridHasGaps) {
  const ReportData data = report_data_of(
      {graded(0.1, 32, "cpu", 0.5, 1), graded(0.1, 64, "cpu", 0.52, 1), graded(0.01, 32, "cpu", 0.9, 1)});
  EXPECT_TRUE(levels_table(data).rows.empty());
  EXPECT_NE(data.no_effects.find("combinations"), std::string::npos) << data.no_effects;
}

TEST(ComparisonTable, HasBothSidesOfEachPair) {
  const ReportData data =
      report_data_of({graded(0.1, 32, "cuda:0", 0.5, 0.5), graded(0.1, 32, "cpu", 0.5, 4),
                      graded(0.1, 64, "cuda:0", 0.5, 1), graded(0.1, 64, "cpu", 0.5, 10)});
  const ChartTable pairs = comparison_table(data);
  EXPECT_EQ(column(pairs, "side"), (std::vector<Json>{"cuda:0", "cpu", "cuda:0", "cpu"}));
  EXPECT_EQ(column(pairs, "seconds"), (std::vector<Json>{0.5, 4.0, 1.0, 10.0}));
  EXPECT_EQ(column(pairs, "label")[0], "batch_size=32");
  EXPECT_EQ(column(pairs, "ratio")[3], "cuda:0 is 10 times as fast");
  EXPECT_EQ(comparison_table(data, 1).rows.size(), 2u);
}

TEST(ComparisonTable, ComparesSweepsWithEachOther) {
  SourceRun other = graded(0.1, 32, "cpu", 0.5, 2);
  other.source = "runs/t";
  const ReportData data = report_data_of({graded(0.1, 32, "cpu", 0.5, 1), other});
  EXPECT_EQ(data.title, "s and t");
  EXPECT_EQ(data.keys, (std::vector<std::string>{"sweep"}));
  EXPECT_EQ(column(comparison_table(data), "side"), (std::vector<Json>{"runs/s", "runs/t"}));
  EXPECT_EQ(column(comparison_table(data), "label")[0], "all");
}

TEST(ComparisonTable, IsEmptyWithoutTimes) {
  std::vector<SourceRun> runs = {graded(0.1, 32, "cpu", 0.5, 1), graded(0.2, 32, "cpu", 0.5, 1)};
  runs[1].source = "runs/t";
  for (SourceRun& run : runs) run.record.epochs.clear();  // only the metrics of the whole run
  const ReportData data = report_data_of(runs);
  EXPECT_TRUE(comparison_table(data).rows.empty());
  EXPECT_EQ(data.keys, (std::vector<std::string>{"lr", "sweep"}));
}

TEST(ComparisonTable, TellsWhatElseDiffersAndWhichTimesAreOfASharedMachine) {
  SourceRun one = graded(0.1, 32, "cpu", 0.5, 1), other = graded(0.1, 32, "cpu", 0.5, 2);
  other.source = "runs/t";
  other.record.epochs.pop_back();
  other.record.jobs = 2;
  const ChartTable pairs = comparison_table(report_data_of({one, other}));
  EXPECT_EQ(column(pairs, "label")[0], "all (but 2 and 1 epochs)");
  EXPECT_EQ(column(pairs, "text"), (std::vector<Json>{"1.00 s", "~2.00 s"}));
}

TEST(ComparisonTable, IsEmptyWithOneDevice) {
  const ReportData data = report_data_of({graded(0.1, 32, "cpu", 0.5, 1), graded(0.1, 64, "cpu", 0.52, 1)});
  EXPECT_TRUE(comparison_table(data).rows.empty());
}

TEST(InteractionsTable, HasNoColumnOfChanceWithoutATest) {
  const ReportData two = report_data_of({graded(0.1, 32, "cpu", 0.5, 1), graded(0.1, 64, "cpu", 0.6, 1),
                                         graded(0.01, 32, "cpu", 0.9, 1), graded(0.01, 64, "cpu", 0.5, 1)});
  EXPECT_EQ(interactions_table(two).columns, (std::vector<std::string>{"settings together", "share"}));
}

TEST(ProvenanceRows, TellWhichFilesAndCommitAProgramRan) {
  SourceRun run = graded(0.1, 32, "cpu", 0.5, 1);
  run.record.provenance = {{"program", "sweep"},
                           {"version", "1.0"},
                           {"revision", "abc"},
                           {"compiler", "GNU 12"},
                           {"inputs", {{{"path", "/home/me/train.py"}, {"sha256", "12ab"}}}},
                           {"git", {{"commit", "cd34"}, {"changed", true}}}};
  const ChartTable rows = provenance_rows(report_data_of({run}));
  EXPECT_EQ(column(rows, "what")[0], "Program");
  EXPECT_EQ(column(rows, "value")[0], "sweep 1.0, revision abc, GNU 12") << "no numerics of its own";
  for (const auto& [what, value] : {std::pair("Input, SHA-256", "12ab  train.py"),
                                    {"Git commit", "cd34, with the changes of git.diff"}}) {
    EXPECT_EQ(std::ranges::count(rows.rows, std::vector<Json>{what, value}), 1) << what;
  }
}

TEST(RunPictures, AreTheNewestOfEachKindWithTheirTexts) {
  const test::TemporaryDirectory directory;
  const tbwriter::EncodedImage first{1, 2, 1, "\x89PNG\r\n\x1a\n first"},
      second{3, 4, 1, "\x89PNG\r\n\x1a\n second"};
  {
    tbwriter::SummaryWriter writer(directory.path());
    writer.add_image("predictions/confusion_matrix", first, 1);
    writer.add_text("predictions/confusion_counts", "| a |", 1);
    writer.add_image("images", first, 0);
    writer.add_image("other", first, 0);
    writer.add_image("predictions/confusion_matrix", second, 2);
    writer.add_text("predictions/confusion_counts", "| b |", 2);
    writer.close();
  }
  const std::vector<RunPicture> pictures = run_pictures(directory.path());
  ASSERT_EQ(pictures.size(), 2u);
  EXPECT_EQ(pictures[0].tag, "images");
  EXPECT_EQ(pictures[1].tag, "predictions/confusion_matrix");
  EXPECT_EQ(pictures[1].step, 2);
  EXPECT_EQ(pictures[1].png, second.bytes);
  EXPECT_EQ(pictures[1].width, static_cast<std::int64_t>(second.width));
  EXPECT_EQ(pictures[1].height, static_cast<std::int64_t>(second.height));
  EXPECT_EQ(pictures[1].text, "| b |");
}

TEST(RunPictures, AreNotMadeOfOtherBytes) {
  const test::TemporaryDirectory directory;
  {
    tbwriter::SummaryWriter writer(directory.path());
    writer.add_image("images", tbwriter::EncodedImage{1, 1, 1, "<svg onload=alert(1)>"}, 0);
    writer.close();
  }
  std::ofstream(directory.path() / "events.out.tfevents.9999999999.damaged") << "no records at all";
  EXPECT_TRUE(run_pictures(directory.path()).empty());
  EXPECT_TRUE(run_pictures(directory.path() / "missing").empty());
}

SourceRun timed(double run_seconds) {
  SourceRun run = testing::made_run({{"lr", run_seconds}}, "cpu", 2, {1.0, 0.5});
  for (EpochRecord& epoch : run.record.epochs) epoch.set("data_wait_seconds", 0.5);
  run.record.run_seconds = run_seconds;
  run.record.setup_seconds = 1;
  run.record.logging_seconds = 0.25;
  return run;
}

TEST(TimeSplit, AddsUpToTheWholeRun) {
  const auto split = time_split(timed(8).record);
  ASSERT_TRUE(split);
  EXPECT_DOUBLE_EQ(split->setup, 1);
  EXPECT_DOUBLE_EQ(split->data_wait, 1);
  EXPECT_DOUBLE_EQ(split->compute, 3);
  EXPECT_DOUBLE_EQ(split->logging, 0.25);
  EXPECT_DOUBLE_EQ(split->rest, 2.75);
}

TEST(TimeSplit, HasTheTimeThatDevicesWaitedForEachOther) {
  SourceRun run = timed(8);
  for (EpochRecord& epoch : run.record.epochs) epoch.set("communication_seconds", 0.75);
  const auto split = time_split(run.record);
  ASSERT_TRUE(split);
  EXPECT_DOUBLE_EQ(split->communication, 1.5);
  EXPECT_DOUBLE_EQ(split->compute, 1.5);
  std::size_t left_out = 0;
  const ChartTable table = times_table(report_data_of({run, timed(6)}), left_out);
  ASSERT_EQ(table.rows.size(), 12u);
  EXPECT_EQ(table.rows[2][3], "waiting for other devices");
}

TEST(TimeSplit, IsNotOfARunThatHasNotEnded) {
  SourceRun run = timed(8);
  run.record.run_seconds.reset();
  EXPECT_FALSE(time_split(run.record));
}

TEST(TimesTable, HasTheLongestRunsIfThereAreMany) {
  std::size_t left_out = 0;
  const ChartTable table = times_table(report_data_of({timed(6), timed(8), timed(7)}), left_out, 2);
  EXPECT_EQ(left_out, 1u);
  ASSERT_EQ(table.rows.size(), 10u);
  EXPECT_EQ(table.rows[0][0], 1);
  EXPECT_EQ(table.rows[5][0], 2);
}

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

}  // namespace sweep::answer_tables_test
