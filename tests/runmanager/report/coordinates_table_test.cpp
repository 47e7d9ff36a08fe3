#include "runmanager/report/setting_tables.h"

#include "runmanager/report/chart_specs.h"
#include "tests/runmanager/answers/made_runs.h"
#include "tests/support/test.h"

namespace sweep::coordinates_table_test {

using Json = nlohmann::ordered_json;
using testing::made_run;

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

}  // namespace sweep::coordinates_table_test
