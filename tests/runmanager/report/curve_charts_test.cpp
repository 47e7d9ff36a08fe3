#include <numeric>

#include "tests/runmanager/report/shown_charts.h"

namespace sweep::curve_charts_test {

using Json = nlohmann::ordered_json;

SourceRun repeat_of(double lr, const Losses& losses, std::int64_t repeat) {
  return made_run({{"lr", lr}, {"repeat", repeat}}, "cpu", 1, losses);
}

TEST(Charts, AreThoseThatHaveSomethingToShow) {
  EXPECT_THAT(Shown({run_of(0.1, {1}), run_of(0.2, {2})}).ids(),
              ElementsAre("curves-loss", "curves-accuracy", "coordinates", "effects", "times"));
  EXPECT_THAT(Shown({run_of(0.1, {1})}).ids(), ElementsAre("curves-loss", "curves-accuracy", "times"));
  EXPECT_THAT(Shown(Runs{}).ids(), IsEmpty());
  EXPECT_THAT(Shown({run_of(0.1, {1}, "cuda:0"), run_of(0.1, {1}, "cpu")}).ids(), Contains("comparison"));
}

TEST(Charts, AreCompleteSpecificationsOfTheirOwn) {
  const Shown shown({run_of(0.1, {1}), run_of(0.2, {2})});
  for (const Chart& chart : shown.charts.charts) {
    const Json spec = complete_spec(chart, shown.charts);
    EXPECT_EQ(spec.at("$schema"), "https://vega.github.io/schema/vega/v5.json") << chart.id;
    EXPECT_FALSE(spec.contains("on")) << chart.id;
    EXPECT_TRUE(spec.at("marks")[0].contains("encode") || spec.at("marks")[0].contains("marks")) << chart.id;
    std::size_t filled = 0;
    for (const Json& data : spec.at("data")) {
      if (!data.contains("values")) continue;
      ++filled;
      EXPECT_EQ(data.at("values").size(), shown.table(data.at("name")).rows.size()) << chart.id << data;
    }
    EXPECT_EQ(filled, chart.kind == "curves" || chart.kind == "coordinates" ? 2u : 1u) << chart.id;
  }
}

TEST(Charts, HaveTheirColumnsInTheirTables) {
  const Shown shown({run_of(0.1, {1}, "cuda:0"), run_of(0.2, {2}, "cuda:0"), run_of(0.1, {1})});
  for (const Chart& chart : shown.charts.charts) {
    std::vector<std::string> there = {"label"};  // of curves: that of their series
    for (const Json& data : chart.spec.at("data"))
      if (!data.contains("source"))
        std::ranges::copy(shown.table(data.at("name")).columns, std::back_inserter(there));
    EXPECT_FALSE(chart.columns.empty()) << chart.id;
    for (const auto& column : chart.columns) EXPECT_THAT(there, Contains(column[1])) << chart.id;
  }
}

// A loss of 0.00001 is not 0.0000.
TEST(Charts, TellLossesBySignificantDigitsAndSharesInPercent) {
  const Shown shown({run_of(0.1, {0.00001})});
  EXPECT_EQ(shown.signal("curves-loss", "numberFormat"), ".4~g");
  EXPECT_EQ(shown.signal("curves-accuracy", "numberFormat"), ".2%");
}

TEST(Curves, CutWhatOneDivergingRunWouldStretch) {
  Runs runs;
  for (int i = 1; i <= 9; ++i) runs.push_back(run_of(i, {1.0, 0.9, 0.8}));
  runs.push_back(run_of(10, {1e6}));
  const Shown shown(runs);
  EXPECT_DOUBLE_EQ(shown.signal("curves-loss", "highest").get<double>(), 1.5);
  EXPECT_THAT(shown.charts.remarks, ElementsAre("Loss: values above 1.5 are not shown."));
}

TEST(Curves, OfFewPointsCutOnlyWhatIsOutOfAllProportion) {
  const auto remarks = [](double worst) {
    return Shown({run_of(0.1, {1.0, 0.9}), run_of(0.2, {worst})}).charts.remarks;
  };
  EXPECT_THAT(remarks(99), IsEmpty());
  EXPECT_THAT(remarks(1e6), ElementsAre("Loss: values above 1.5 are not shown."));
  EXPECT_THAT(Shown({run_of(0.1, {1e6, 1})}).charts.remarks, IsEmpty()) << "which is it?";
}

// A point at the edge would lose half of its area.
TEST(Curves, AreCutAtTheEdgeOnlyIfValuesAreNotShown) {
  const Shown shown({run_of(0.1, {1})});
  EXPECT_EQ(complete_spec(shown.chart("curves-loss"), shown.charts).at("marks")[0].at("clip"),
            (Json{{"signal", "highest !== null"}}));
}

TEST(Curves, HaveAPointPerEpochOfEachRunExceptWhatIsNoNumber) {
  const auto rows = Shown({run_of(0.1, {3, 2, std::nan("")}), run_of(0.01, {5, 4})}).losses();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1], (Cells{0, "training", "loss", 2, 2.0, nullptr, nullptr}));
  EXPECT_EQ(rows[3], (Cells{1, "training", "loss", 2, 4.0, nullptr, nullptr}));
}

TEST(Curves, AreMeansWithDeviationsOverTheEpochsThatAllRepeatsHave) {
  const Shown shown({repeat_of(0.1, {1, 2, 9}, 0), repeat_of(0.1, {3, 6}, 1), repeat_of(0.01, {4, 4}, 0),
                     repeat_of(0.01, {4, 4}, 1)});
  const std::vector<CurveSeries> series = curve_series(shown.data);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_THAT(series[0].runs, ElementsAre(0, 1));
  EXPECT_EQ(series[0].label, "lr=0.1");
  const auto rows = shown.losses();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_DOUBLE_EQ(rows[1][4].get<double>(), 4);  // of 2 and 6
  EXPECT_DOUBLE_EQ(rows[1][5].get<double>(), 4 - std::sqrt(8));
  EXPECT_DOUBLE_EQ(rows[1][6].get<double>(), 4 + std::sqrt(8));
}

TEST(Curves, AreMeansOfCompletedRepeatsOnceThereIsOne) {
  Runs runs = {repeat_of(0.1, {9}, 2), repeat_of(0.1, {1, 2}, 0), repeat_of(0.1, {3, 6}, 1)};
  runs[0].record.status = RunStatus::kFailed;
  const Shown shown(runs);
  EXPECT_EQ(curve_series(shown.data).at(0).runs.size(), 3u) << "they are chosen together";
  EXPECT_EQ(shown.losses().size(), 2u);
  EXPECT_THAT(shown.column("series", "repeats"), ElementsAre(2));
  runs.resize(1);
  EXPECT_EQ(Shown(runs).losses().size(), 1u);
}

TEST(Curves, OfRepeatsJoinEpochsByTheirNumber) {
  Runs runs = {repeat_of(0.1, {1, 2}, 0), repeat_of(0.1, {3, 6}, 1)};
  runs[0].record.untrained = EpochRecord(0, {{"loss", 100}});
  const auto rows = Shown(runs).losses();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][3], 1);
  EXPECT_EQ(rows[0][4], 2.0) << "of 1 and 3";
}

TEST(Curves, OfProgramsAreByTheirSteps) {
  Runs runs = {repeat_of(0.1, {1, 2, 3, 4}, 0), repeat_of(0.1, {4, 8}, 1)};
  for (EpochRecord& epoch : runs[1].record.epochs) epoch.set("step", 2 * epoch.epoch);  // one of two was kept
  const Shown shown(runs);
  const auto rows = shown.losses();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][3], 2);
  EXPECT_EQ(rows[0][4], 3.0) << "of 2 and 4";
  EXPECT_EQ(rows[1][3], 4);
  EXPECT_EQ(shown.signal("curves-loss", "position"), "step");
}

TEST(Curves, OfOtherCombinationsStayApartThoughTheyDifferInLateDigits) {
  Runs runs;
  for (const double lr : {0.1000012345, 0.1000054321})
    for (const std::int64_t repeat : {0, 1}) runs.push_back(repeat_of(lr, {1}, repeat));
  EXPECT_THAT(Shown(runs).column("series", "label"), ElementsAre("lr=0.1000012345", "lr=0.1000054321"));
}

TEST(Curves, AreThinnedToTheirFirstAndLastEpochAndSomeBetween) {
  Losses losses(20'000);
  std::iota(losses.begin(), losses.end(), 0.0);
  const Shown shown({run_of(0.1, losses)});
  const auto rows = shown.losses();
  ASSERT_EQ(rows.size(), 15'000u) << "of 60,000 for two parts of two measures";
  EXPECT_EQ(rows.front()[3], 1);
  EXPECT_EQ(rows.back()[3], 20'000);
  EXPECT_THAT(shown.charts.remarks, Contains("Curves show 15000 of up to 20000 epochs, evenly spaced."));
  for (std::size_t i = 1; i < rows.size(); ++i)
    ASSERT_NEAR(rows[i][3].get<double>() - rows[i - 1][3].get<double>(), 4.0 / 3, 1);
}

// A program that validates every 100 batches.
TEST(Curves, OfMetricsOfFewStepsHaveAllTheirValues) {
  SourceRun run = run_of(0.1, Losses(20'000, 1.0));
  for (std::size_t i = 99; i < 20'000; i += 100) run.record.epochs[i].set("val_loss", i);
  const Shown shown({run});
  EXPECT_THAT(shown.table("points").rows, Contains(Contains("val_loss")).Times(200));
}

TEST(Curves, AreOfWhatTheRunsMeasureAndOfPeoplesOwnMetrics) {
  SourceRun run = run_of(0.1, {1, 2, 3});
  for (EpochRecord& epoch : run.record.epochs) epoch.set("accuracy", std::nullopt);
  run.record.epochs[0].set("rmse", 0.5);
  EXPECT_THAT(Shown({run}).ids(), ElementsAre("curves-loss", "curves-rmse", "times"));
  run.record.epochs[1].set("reward", 7);  // not of every epoch
  for (int i = 0; i < 20; ++i) run.record.epochs[2].set("z" + std::to_string(i), i);
  const Shown shown({run});
  ASSERT_EQ(shown.ids().size(), 12u + 1) << "the first of them, and the times";
  EXPECT_EQ(shown.chart("curves-own-2").title, "reward");
  EXPECT_THAT(shown.charts.remarks, ElementsAre("Curves are those of 12 metrics; 11 others are left out."));
  EXPECT_EQ(Shown({run}, {asked_goal("z9", true)}).chart("curves-own-2").title, "z9");
  EXPECT_THAT(shown.table("points").rows,
              Contains(Cells{0, "reported", "reward", 2, 7.0, nullptr, nullptr}).Times(1));
}

TEST(Curves, NameTheirSettingsAndTheirGroup) {
  EXPECT_EQ(Shown({run_of(0.1, {1}), run_of(0.01, {1})}).table("series").rows[1],
            (Cells{1, "lr=0.01", 1, "0.01", Json{{"lr", "0.01"}}}));
}

}  // namespace sweep::curve_charts_test
