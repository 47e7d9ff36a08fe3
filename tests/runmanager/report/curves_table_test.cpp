#include "runmanager/report/curves_table.h"

#include "tests/runmanager/answers/made_runs.h"
#include "tests/support/test.h"

namespace sweep::curves_table_test {

using Json = nlohmann::ordered_json;
using testing::made_run;

SourceRun curve_of(double lr, const std::vector<double>& losses, std::optional<std::int64_t> repeat = {}) {
  Params params = {{"lr", lr}};
  if (repeat) params.emplace_back("repeat", *repeat);
  return made_run(params, "cpu", 1, losses);
}

// Rows of the loss in the training part.
std::vector<std::vector<Json>> losses_of(const Curves& curves) {
  std::vector<std::vector<Json>> rows;
  for (const auto& row : curves.points.rows) {
    if (row[1] == "training" && row[2] == "loss") rows.push_back(row);
  }
  return rows;
}

TEST(Curves, HaveAPointPerEpochOfEachRun) {
  const ReportData data = report_data_of({curve_of(0.1, {3, 2, 1}), curve_of(0.01, {5, 4})});
  const Curves curves = curves_table(data, curve_series(data));
  const auto rows = losses_of(curves);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1], (std::vector<Json>{0, "training", "loss", 2, 2.0, nullptr, nullptr}));
  EXPECT_EQ(rows[4], (std::vector<Json>{1, "training", "loss", 2, 4.0, nullptr, nullptr}));
  EXPECT_EQ(curves.epochs, 3u);
}

TEST(Curves, AreMeansWithDeviationsOverRepeats) {
  const ReportData data = report_data_of({curve_of(0.1, {1, 2}, 0), curve_of(0.1, {3, 6}, 1),
                                          curve_of(0.01, {4, 4}, 0), curve_of(0.01, {4, 4}, 1)});
  const std::vector<CurveSeries> series = curve_series(data);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].runs, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(series[0].label, "lr=0.1");
  const auto rows = losses_of(curves_table(data, series));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_DOUBLE_EQ(rows[1][4].get<double>(), 4);  // of 2 and 6
  EXPECT_DOUBLE_EQ(rows[1][5].get<double>(), 4 - std::sqrt(8));
  EXPECT_DOUBLE_EQ(rows[1][6].get<double>(), 4 + std::sqrt(8));
}

TEST(Curves, OfRepeatsEndWithTheShortestOne) {
  const ReportData data = report_data_of({curve_of(0.1, {1, 2, 3}, 0), curve_of(0.1, {3}, 1)});
  EXPECT_EQ(losses_of(curves_table(data, curve_series(data))).size(), 1u);
}

TEST(Curves, AreMeansOfCompletedRepeatsOnceThereIsOne) {
  SourceRun failed = curve_of(0.1, {9}, 2);
  failed.record.status = RunStatus::kFailed;
  std::vector<SourceRun> runs = {failed, curve_of(0.1, {1, 2}, 0), curve_of(0.1, {3, 6}, 1)};
  const ReportData data = report_data_of(runs);
  const std::vector<CurveSeries> series = curve_series(data);
  EXPECT_EQ(series.at(0).runs.size(), 3u) << "they are chosen together";
  EXPECT_EQ(losses_of(curves_table(data, series)).size(), 2u);
  EXPECT_EQ(series_table(data, series, "").rows.at(0).at(2), 2) << "repeats";
  runs.resize(1);
  const ReportData before = report_data_of(runs);
  EXPECT_EQ(losses_of(curves_table(before, curve_series(before))).size(), 1u);
}

TEST(Curves, OfRepeatsJoinEpochsByTheirNumber) {
  std::vector<SourceRun> runs = {curve_of(0.1, {1, 2}, 0), curve_of(0.1, {3, 6}, 1)};
  runs[0].record.untrained = EpochRecord(0, {{"loss", 100}});
  const ReportData data = report_data_of(runs);
  const auto rows = losses_of(curves_table(data, curve_series(data)));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][3], 1);
  EXPECT_EQ(rows[0][4], 2.0) << "of 1 and 3";
}

TEST(Curves, OfProgramsAreByTheirSteps) {
  std::vector<SourceRun> runs = {curve_of(0.1, {1, 2, 3, 4}, 0), curve_of(0.1, {4, 8}, 1)};
  for (EpochRecord& epoch : runs[1].record.epochs) epoch.set("step", 2 * epoch.epoch);  // one of two was kept
  const ReportData data = report_data_of(runs);
  const Curves curves = curves_table(data, curve_series(data));
  const auto rows = losses_of(curves);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][3], 2);
  EXPECT_EQ(rows[0][4], 3.0) << "of 2 and 4";
  EXPECT_EQ(rows[1][3], 4);
  EXPECT_TRUE(curves.are_steps);
}

TEST(Curves, OfOtherCombinationsStayApartThoughTheyDifferInLateDigits) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1000012345, 0.1000054321})
    for (const std::int64_t repeat : {0, 1}) runs.push_back(curve_of(lr, {1}, repeat));
  const std::vector<CurveSeries> series = curve_series(report_data_of(runs));
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].label, "lr=0.1000012345");
  EXPECT_EQ(series[1].label, "lr=0.1000054321");
}

TEST(Curves, LeaveOutWhatIsNoNumber) {
  const ReportData data = report_data_of({curve_of(0.1, {3, std::numeric_limits<double>::quiet_NaN(), 1})});
  EXPECT_EQ(losses_of(curves_table(data, curve_series(data))).size(), 2u);
}

TEST(Curves, AreThinnedToTheirFirstAndLastEpochAndSomeBetween) {
  std::vector<double> losses;
  for (int i = 0; i < 1000; ++i) losses.push_back(i);
  const ReportData data = report_data_of({curve_of(0.1, losses)});
  const Curves curves = curves_table(data, curve_series(data), 400);
  const auto rows = losses_of(curves);
  ASSERT_EQ(rows.size(), 100u);
  EXPECT_EQ(rows.front()[3], 1);
  EXPECT_EQ(rows.back()[3], 1000);
  EXPECT_EQ(curves.shown, 100u);
  EXPECT_EQ(curves.epochs, 1000u);
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_NEAR(rows[i][3].get<double>() - rows[i - 1][3].get<double>(), 999.0 / 99, 1);
}

TEST(Curves, AreOfWhatTheRunsMeasure) {
  SourceRun numbers = curve_of(0.1, {1});
  numbers.record.epochs[0].set("accuracy", std::nullopt);
  numbers.record.epochs[0].set("rmse", 0.5);
  const std::vector<CurveMeasure> measures = curve_measures(report_data_of({numbers}));
  ASSERT_EQ(measures.size(), 2u);
  EXPECT_EQ(measures[0].name, "loss");
  EXPECT_EQ(measures[1].name, "rmse");
}

TEST(Curves, AreAlsoOfPeoplesOwnMetrics) {
  SourceRun own = curve_of(0.1, {1, 2, 3});
  own.record.epochs[1].set("reward", 7);  // not of every epoch
  for (int i = 0; i < 20; ++i) own.record.epochs[2].set("z" + std::to_string(i), i);
  const ReportData data = report_data_of({own});
  const std::vector<CurveMeasure> measures = curve_measures(data);
  ASSERT_EQ(measures.size(), kMaxCurveMeasures);
  EXPECT_EQ(measures[2].title, "reward");
  const auto rows = curves_table(data, curve_series(data)).points.rows;
  EXPECT_EQ(std::ranges::count(rows, std::vector<Json>{0, "reported", "reward", 2, 7.0, nullptr, nullptr}),
            1);
}

TEST(Series, NamesItsSettingsAndItsGroup) {
  const ReportData data = report_data_of({curve_of(0.1, {1}), curve_of(0.01, {1})});
  const ChartTable table = series_table(data, curve_series(data), "lr");
  EXPECT_EQ(table.rows[1], (std::vector<Json>{1, "lr=0.01", 1, "0.01", Json{{"lr", "0.01"}}}));
}

}  // namespace sweep::curves_table_test
