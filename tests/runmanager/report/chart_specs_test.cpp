#include "runmanager/report/chart_specs.h"

#include <numeric>

#include "runmanager/report/curves_table.h"
#include "runmanager/report/setting_tables.h"
#include "tests/runmanager/answers/made_runs.h"

namespace sweep::chart_specs_test {

std::vector<std::string> ids(const ReportData& data) {
  std::vector<std::string> names;
  for (const Chart& chart : charts_of(data).charts) names.push_back(chart.id);
  return names;
}

SourceRun run_of(double lr, const std::vector<double>& losses, const std::string& device = "cpu") {
  SourceRun run = made_run({{"lr", lr}}, device, 1, losses);
  run.record.run_seconds = 5;
  return run;
}

TEST(Charts, AreThoseThatHaveSomethingToShow) {
  EXPECT_THAT(ids(report_data_of({run_of(0.1, {1}), run_of(0.2, {2})})),
              ElementsAre("curves-loss", "curves-accuracy", "coordinates", "effects", "times"));
  EXPECT_THAT(ids(report_data_of({run_of(0.1, {1})})),
              ElementsAre("curves-loss", "curves-accuracy", "times"));
  EXPECT_THAT(ids(report_data_of({})), ElementsAre());
  EXPECT_THAT(ids(report_data_of({run_of(0.1, {1}, "cuda:0"), run_of(0.1, {1}, "cpu")})),
              Contains("comparison"));
}

TEST(Charts, AreCompleteSpecificationsOfTheirOwn) {
  const ReportData data = report_data_of({run_of(0.1, {1}), run_of(0.2, {2})});
  const Charts charts = charts_of(data);
  for (const Chart& chart : charts.charts) {
    const auto spec = complete_spec(chart, charts);
    EXPECT_EQ(spec.at("$schema"), "https://vega.github.io/schema/vega/v5.json") << chart.id;
    for (const auto& [name, table] : chart.data) {
      std::size_t found = 0;
      for (const auto& one : spec.at("data")) {
        if (one.at("name") == name) found += one.at("values").size();
      }
      EXPECT_EQ(found, charts.tables.at(table).rows.size()) << chart.id << " " << name;
    }
  }
}

TEST(Charts, HaveAScaleAndAnAxisForEachSetting) {
  SourceRun one = run_of(0.1, {1}), other = run_of(0.2, {2});
  one.record.params.emplace_back("optimizer", "sgd");
  other.record.params.emplace_back("optimizer", "adam");
  const Charts charts = charts_of(report_data_of({one, other}));
  for (const Chart& chart : charts.charts) {
    if (chart.id != "coordinates") continue;
    std::vector<std::string> titles;
    for (const auto& axis : chart.spec.at("axes")) {
      if (axis.contains("title")) titles.push_back(axis.at("title"));
    }
    EXPECT_THAT(titles, ElementsAre("lr", "optimizer", "time per epoch, s", "training accuracy"));
    EXPECT_EQ(chart.spec.at("scales").size(), 2 + titles.size());
    return;
  }
  FAIL() << "there are no coordinates";
}

// The value of a signal of a chart, null if there is none.
nlohmann::ordered_json signal_of(const Chart& chart, const std::string& name) {
  nlohmann::ordered_json value;
  for (const auto& signal : chart.spec.at("signals"))
    if (signal.at("name") == name) value = signal.at("value");
  return value;
}

TEST(Charts, SayOfWhatTheComparedTimesAre) {
  const auto title_of = [](std::vector<SourceRun> runs) {
    const Charts charts = charts_of(report_data_of(std::move(runs)));
    const auto chart = std::ranges::find(charts.charts, "comparison", &Chart::kind);
    return chart == charts.charts.end() ? nullptr : signal_of(*chart, "title");
  };
  std::vector<SourceRun> runs = {run_of(0.1, {1}, "cuda:0"), run_of(0.1, {1}, "cpu")};
  EXPECT_EQ(title_of(runs), "time per epoch, s, median without the first");
  for (SourceRun& run : runs) run.record.epochs.clear();  // a program that reports nothing
  EXPECT_EQ(title_of(runs), "time of the run, s");
}

// A loss of 0.00001 is not 0.0000.
TEST(Charts, TellLossesBySignificantDigitsAndSharesInPercent) {
  const Charts charts = charts_of(report_data_of({run_of(0.1, {0.00001})}));
  EXPECT_EQ(signal_of(charts.charts[0], "numberFormat"), ".4~g");
  EXPECT_EQ(signal_of(charts.charts[1], "numberFormat"), ".2%");
}

TEST(Charts, CutWhatOneDivergingRunWouldStretch) {
  std::vector<SourceRun> runs;
  for (int i = 1; i <= 9; ++i) runs.push_back(run_of(i, {1.0, 0.9, 0.8}));
  runs.push_back(run_of(10, {1e6}));
  const Charts charts = charts_of(report_data_of(runs));
  EXPECT_DOUBLE_EQ(signal_of(charts.charts[0], "highest").get<double>(), 1.5);
  EXPECT_THAT(charts.remarks, ElementsAre("Loss: values above 1.5 are not shown."));
}

TEST(Charts, OfFewPointsCutOnlyWhatIsOutOfAllProportion) {
  const auto remarks = [](double worst) {
    return charts_of(report_data_of({run_of(0.1, {1.0, 0.9}), run_of(0.2, {worst})})).remarks;
  };
  EXPECT_THAT(remarks(99), ElementsAre());
  EXPECT_THAT(remarks(1e6), ElementsAre("Loss: values above 1.5 are not shown."));
  EXPECT_THAT(charts_of(report_data_of({run_of(0.1, {1e6, 1})})).remarks, ElementsAre()) << "which is it?";
}

using Json = nlohmann::ordered_json;

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
  std::vector<double> losses(1000);
  std::iota(losses.begin(), losses.end(), 0.0);
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

SourceRun timed_run(ParamValue value, double accuracy, double seconds) {
  SourceRun run = made_run({{"key", std::move(value)}}, "cpu", seconds);
  run.record.epochs[0].set("validation_accuracy", accuracy);
  return run;
}

// The values of all runs on one axis.
std::vector<Json> values(const Coordinates& coordinates, std::size_t axis) {
  std::vector<Json> values;
  for (const auto& row : coordinates.runs.rows) values.push_back(row.at(4 + axis));
  return values;
}

TEST(Coordinates, PutNumbersInTheirOrderAndTheBestAtTheTop) {
  const Coordinates coordinates = coordinates_of(
      report_data_of({timed_run(0.1, 0.5, 4), timed_run(0.001, 0.9, 2), timed_run(0.01, 0.7, 3)}));
  ASSERT_EQ(coordinates.axes.rows.size(), 3u);
  EXPECT_EQ(coordinates.axes.rows[0][1], "key");
  EXPECT_EQ(coordinates.axes.rows[1][1], "time per epoch, s");
  EXPECT_EQ(coordinates.axes.rows[2][1], "validation accuracy");
  EXPECT_EQ(values(coordinates, 0), (std::vector<Json>{0.1, 0.001, 0.01}));
  EXPECT_EQ(coordinates.scales[0].at("type"), "point");
  EXPECT_EQ(coordinates.scales[0].at("domain"), (Json{0.001, 0.01, 0.1}));
  EXPECT_EQ(coordinates.scales[1].at("domain"), (Json{{"data", "runs"}, {"field", "axis1"}}));
  EXPECT_EQ(coordinates.scales[1].at("reverse"), true);
  EXPECT_EQ(coordinates.scales[2].at("reverse"), false);
  EXPECT_EQ(coordinates.formats[2], ".3~%");
}

TEST(Coordinates, HaveTheBestAtTheTopThatTheGoalsAskFor) {
  const ReportData data =
      report_data_of({timed_run(0.1, 0.5, 4), timed_run(0.2, 0.9, 2)},
                     {asked_goal("validation_accuracy", false), asked_goal("epoch_seconds", true)});
  EXPECT_EQ(coordinates_of(data).scales[1].at("reverse"), false);
  EXPECT_EQ(coordinates_of(data).scales[2].at("reverse"), true);
  Json better;
  for (const Chart& chart : charts_of(data).charts) {
    for (const Json& signal : chart.spec.value("signals", Json::array()))
      if (signal.at("name") == "better") better = signal.at("value");
  }
  EXPECT_EQ(better, "smaller");
}

TEST(Coordinates, KeepTextsInTheOrderOfTheRuns) {
  const Coordinates coordinates = coordinates_of(
      report_data_of({timed_run(std::string("sgd"), 0.5, 1), timed_run(std::string("1"), 0.6, 1)}));
  EXPECT_EQ(values(coordinates, 0), (std::vector<Json>{"sgd", "1"}));
  EXPECT_EQ(coordinates.scales[0].at("domain"), (Json{"sgd", "1"}));
  EXPECT_EQ(coordinates.axes.rows[0][2], "E");
}

TEST(Coordinates, HaveNoPlaceForANumberThatARunLacks) {
  SourceRun without = timed_run(0.0, 0.5, 1);
  without.record.params = {};
  const Coordinates coordinates =
      coordinates_of(report_data_of({timed_run(0.9, 0.6, 1), without, timed_run(0.0, 0.5, 1)}));
  EXPECT_EQ(values(coordinates, 0), (std::vector<Json>{0.9, nullptr, 0.0}));
  EXPECT_EQ(coordinates.scales[0].at("domain"), (Json{0.0, 0.9}));
}

TEST(Coordinates, PlaceManyNumbersByTheirLogarithm) {
  std::vector<SourceRun> wide, narrow;
  for (int i = 0; i <= 20; ++i) {
    wide.push_back(timed_run(std::pow(10, i / 5.0), 0.5 + i / 100.0, 1));
    narrow.push_back(timed_run(1 + i / 5.0, 0.5 + i / 100.0, 1));
  }
  EXPECT_EQ(coordinates_of(report_data_of(wide)).scales[0].at("type"), "log");
  EXPECT_EQ(coordinates_of(report_data_of(narrow)).scales[0].at("type"), "linear");
  EXPECT_EQ(coordinates_of(report_data_of(narrow)).axes.rows[0][2], "R");
}

TEST(Coordinates, HaveOnlyCompletedRuns) {
  SourceRun failed = timed_run(0.5, 0.9, 1);
  failed.record.status = RunStatus::kFailed;
  const Coordinates coordinates =
      coordinates_of(report_data_of({timed_run(0.1, 0.5, 1), failed, timed_run(0.2, 0.6, 1)}));
  EXPECT_EQ(coordinates.runs.rows.size(), 2u);
  EXPECT_EQ(coordinates.runs.rows[1][1], "key=0.2");
}

}  // namespace sweep::chart_specs_test
