#include "runmanager/report/coordinates_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/runmanager/answers/made_runs.h"

namespace sweep {
namespace {

using testing::made_run;
using Json = nlohmann::ordered_json;

SourceRun timed_run(ParamValue value, double accuracy, double seconds) {
  SourceRun run = made_run({{"key", std::move(value)}}, "cpu", seconds);
  run.record.epochs[0].set("validation_accuracy", accuracy);
  return run;
}

// y by axis of one run.
std::map<int, double> places(const Coordinates& coordinates, int run) {
  std::map<int, double> places;
  for (const auto& row : coordinates.points.rows) {
    if (row[0] == run) places[row[1].get<int>()] = row[2].get<double>();
  }
  return places;
}

TEST(Coordinates, PutNumbersInTheirOrderAndTheBestAtTheTop) {
  const Coordinates coordinates = coordinates_of(
      report_data_of({timed_run(0.1, 0.5, 4), timed_run(0.001, 0.9, 2), timed_run(0.01, 0.7, 3)}));
  ASSERT_EQ(coordinates.axes.rows.size(), 3u);
  EXPECT_EQ(coordinates.axes.rows[0][1], "key");
  EXPECT_EQ(coordinates.axes.rows[1][1], "time per epoch");
  EXPECT_EQ(coordinates.axes.rows[2][1], "validation accuracy");
  EXPECT_EQ(places(coordinates, 0), (std::map<int, double>{{0, 1}, {1, 0}, {2, 0}}));
  EXPECT_EQ(places(coordinates, 1), (std::map<int, double>{{0, 0}, {1, 1}, {2, 1}}));
  for (const auto& [axis, y] : places(coordinates, 2)) EXPECT_NEAR(y, 0.5, 1e-12) << axis;
}

TEST(Coordinates, KeepTextsInTheOrderOfTheRuns) {
  const Coordinates coordinates = coordinates_of(
      report_data_of({timed_run(std::string("sgd"), 0.5, 1), timed_run(std::string("adam"), 0.6, 1)}));
  EXPECT_EQ(places(coordinates, 0)[0], 0);
  EXPECT_EQ(places(coordinates, 1)[0], 1);
  EXPECT_EQ(coordinates.ticks.rows[0][2], "sgd");
}

TEST(Coordinates, PlaceManyNumbersByTheirLogarithm) {
  std::vector<SourceRun> runs;
  for (int i = 0; i <= 20; ++i) runs.push_back(timed_run(std::pow(10, i / 5.0), 0.5 + i / 100.0, 1));
  const Coordinates coordinates = coordinates_of(report_data_of(runs));
  EXPECT_NEAR(places(coordinates, 5)[0], 0.25, 1e-9) << "10 between 1 and 10,000";
  std::vector<std::string> texts;
  for (const auto& row : coordinates.ticks.rows) {
    if (row[0] == 0) texts.push_back(row[2]);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"1", "10", "100", "1000", "1e+04"}));
}

TEST(Coordinates, HaveOnlyCompletedRuns) {
  SourceRun failed = timed_run(0.5, 0.9, 1);
  failed.record.status = RunStatus::kFailed;
  const Coordinates coordinates =
      coordinates_of(report_data_of({timed_run(0.1, 0.5, 1), failed, timed_run(0.2, 0.6, 1)}));
  EXPECT_EQ(coordinates.lines.rows.size(), 2u);
  EXPECT_EQ(coordinates.lines.rows[1][1], "key=0.2");
}

}  // namespace
}  // namespace sweep
