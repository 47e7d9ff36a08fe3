#include "runmanager/report/answer_tables.h"

#include "runmanager/report/page_parts.h"
#include "tests/runmanager/answers/made_runs.h"
#include "tests/runmanager/report/chart_column.h"
#include "tests/support/test.h"

namespace sweep::answer_tables_test {

using Json = nlohmann::ordered_json;
using test::column;
using testing::made_run;

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

}  // namespace sweep::answer_tables_test
