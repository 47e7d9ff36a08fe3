#include "runmanager/records/recorded_config.h"
#include "runmanager/report/report.h"
#include "tests/runmanager/report/shown_charts.h"

namespace sweep::answer_charts_test {

using Json = nlohmann::ordered_json;

// A value of the only setting.
SourceRun keyed(ParamValue value, double accuracy, double seconds = 1) {
  return graded({{"key", std::move(value)}}, accuracy, seconds);
}

SourceRun of_sweep(std::string sweep, SourceRun run) {
  run.source = std::move(sweep);
  return run;
}

// Two learning rates, and two sizes.
Runs grid(const Losses& accuracies) {
  Runs runs;
  for (const double lr : {0.1, 0.01})
    for (const std::int64_t size : {32, 64})
      if (runs.size() < accuracies.size())
        runs.push_back(graded({{"lr", lr}, {"batch_size", size}}, accuracies[runs.size()]));
  return runs;
}

TEST(Coordinates, HaveAScaleAndAnAxisForEachSetting) {
  Runs runs = {run_of(0.1, {1}), run_of(0.2, {2})};
  runs[0].record.params.emplace_back("optimizer", "sgd");
  runs[1].record.params.emplace_back("optimizer", "adam");
  const Shown shown(runs);
  EXPECT_THAT(shown.column("axes", "title"),
              ElementsAre("lr", "optimizer", "time per epoch, s", "training accuracy"));
  const Json& spec = shown.chart("coordinates").spec;
  EXPECT_EQ(spec.at("axes").at(3).at("title"), (Json{{"signal", "data('axes')[1].title"}}));
  EXPECT_EQ(spec.at("scales").size(), 2 + 4u);
}

TEST(Coordinates, PutNumbersInTheirOrderAndTheBestAtTheTop) {
  const Shown shown({keyed(0.1, 0.5, 4), keyed(0.001, 0.9, 2), keyed(0.01, 0.7, 3)});
  EXPECT_THAT(shown.column("axes", "title"), ElementsAre("key", "time per epoch, s", "validation accuracy"));
  EXPECT_THAT(shown.column("lines", "axis0"), ElementsAre(0.1, 0.001, 0.01));
  EXPECT_EQ(shown.scale(0).at("type"), "point");
  EXPECT_EQ(shown.scale(0).at("domain"), (Json{0.001, 0.01, 0.1}));
  EXPECT_EQ(shown.scale(1).at("domain"), (Json{{"data", "lines"}, {"field", "axis1"}}));
  EXPECT_EQ(shown.scale(1).at("reverse"), true);
  EXPECT_EQ(shown.scale(2).at("reverse"), false);
  const Json axis = shown.chart("coordinates").spec.at("axes").back();
  EXPECT_EQ(axis.at("format"), ".3~%");
  EXPECT_THAT(axis.dump(), HasSubstr("format(datum.value, '.2~e')")) << "long numbers would be cut";
}

TEST(Coordinates, HaveTheBestAtTheTopThatTheGoalsAskFor) {
  const Shown shown({keyed(0.1, 0.5, 4), keyed(0.2, 0.9, 2)},
                    {asked_goal("validation_accuracy", false), asked_goal("epoch_seconds", true)});
  EXPECT_EQ(shown.scale(1).at("reverse"), false);
  EXPECT_EQ(shown.scale(2).at("reverse"), true);
  EXPECT_EQ(shown.signal("coordinates", "better"), "smaller");
}

TEST(Coordinates, KeepTextsInTheOrderOfTheRuns) {
  const Shown shown({keyed("sgd", 0.5), keyed("1", 0.6)});
  EXPECT_THAT(shown.column("lines", "axis0"), ElementsAre("sgd", "1"));
  EXPECT_EQ(shown.scale(0).at("domain"), (Json{"sgd", "1"}));
  EXPECT_THAT(shown.column("axes", "test"), ElementsAre("E", "R", "R"));
}

TEST(Coordinates, HaveNoPlaceForANumberThatARunLacks) {
  Runs runs = {keyed(0.9, 0.6), keyed(0.0, 0.5), keyed(0.0, 0.5)};
  runs[1].record.params = {};
  const Shown shown(runs);
  EXPECT_THAT(shown.column("lines", "axis0"), ElementsAre(0.9, nullptr, 0.0));
  EXPECT_EQ(shown.scale(0).at("domain"), (Json{0.0, 0.9}));
}

TEST(Coordinates, PlaceManyNumbersByTheirLogarithm) {
  Runs wide, narrow;
  for (int i = 0; i <= 20; ++i) {
    wide.push_back(keyed(std::pow(10, i / 5.0), 0.5 + i / 100.0));
    narrow.push_back(keyed(1 + i / 5.0, 0.5 + i / 100.0));
  }
  EXPECT_EQ(Shown(wide).scale(0).at("type"), "log");
  EXPECT_EQ(Shown(narrow).scale(0).at("type"), "linear");
  EXPECT_EQ(Shown(narrow).column("axes", "test")[0], "R");
}

TEST(Coordinates, HaveOnlyCompletedRuns) {
  Runs runs = {keyed(0.1, 0.5), keyed(0.5, 0.9), keyed(0.2, 0.6)};
  runs[1].record.status = RunStatus::kFailed;
  EXPECT_THAT(Shown(runs).column("lines", "label"), ElementsAre("key=0.1", "key=0.2"));
}

TEST(EffectsChart, HasTheSettingThatChangesMostFirst) {
  const Shown shown(grid({0.5, 0.52, 0.9, 0.92}));
  const auto column = [&](const char* title) { return shown.column("levels", title); };
  EXPECT_THAT(column("setting"), ElementsAre("lr", "lr", "lr", "batch_size", "batch_size", "batch_size"));
  EXPECT_THAT(column("level"), ElementsAre(false, true, true, false, true, true));
  EXPECT_THAT(column("best"), ElementsAre(false, false, true, false, false, false))
      << "the batch size has 0.2% of the differences, which is no reason to choose";
  EXPECT_THAT(column("text"), ElementsAre("", "51.00%", "91.00%", "", "70.00%", "72.00%"));
  EXPECT_NEAR(column("mean")[2].get<double>(), 0.91, 1e-12);
  EXPECT_NEAR(column("middle")[2].get<double>(), 0.71, 1e-12);
}

TEST(EffectsChart, CutsIntervalsFarLongerThanTheRunsDiffer) {
  const Shown shown(grid({0.5, 0.9, 0.88, 0.6}));  // One degree of freedom: t is 12.7.
  EXPECT_LT(shown.column("levels", "low")[1], -1);
  EXPECT_NEAR(shown.column("levels", "from")[1].get<double>(), 0.5 - 0.4, 1e-12);
  EXPECT_EQ(shown.column("levels", "to")[2], 1.0) << "there is no larger accuracy";
  const Shown exact(grid({0.5, 0.52, 0.9, 0.925}));
  EXPECT_EQ(exact.column("levels", "from"), exact.column("levels", "low"));
  EXPECT_EQ(exact.column("levels", "to"), exact.column("levels", "high"));
}

TEST(EffectsChart, IsMissingIfTheGridHasGaps) {
  const Shown shown(grid({0.5, 0.52, 0.9}));
  EXPECT_THAT(shown.ids(), Not(Contains("effects")));
  EXPECT_THAT(shown.data.no_effects, HasSubstr("combinations"));
}

TEST(EffectsChart, SaysThatRepeatsWhichOthersLackAreLeftOut) {
  Runs runs;
  for (const auto& [lr, repeat] : {std::pair(0.1, 0), {0.2, 0}, {0.2, 1}, {0.2, 2}})
    runs.push_back(graded({{"lr", lr}, {"repeat", std::int64_t{repeat}}}, lr + 0.1 * repeat));
  EXPECT_THAT(
      Shown(runs).charts.remarks,
      Contains("Effects count 1 repeat of each combination, as many as all have; 2 runs are left out."));
  EXPECT_EQ(Shown(runs).column("levels", "mean")[2], 0.2) << "not the mean of all three";
  runs.resize(2);
  EXPECT_THAT(Shown(runs).charts.remarks, IsEmpty());
}

TEST(EffectsChart, HasTheBestOfManyValuesInTheirOrder) {
  Runs runs;
  for (int i = 0; i < 60; ++i) runs.push_back(graded({{"x", std::int64_t{i}}}, i < 30 ? 0.5 : 0.01 * i));
  const Shown shown(runs);
  const Cells values = shown.column("levels", "value");
  ASSERT_EQ(values.size(), 41u);
  EXPECT_EQ(values[1], "0");
  EXPECT_EQ(values[40], "59");
  EXPECT_THAT(shown.charts.remarks, ElementsAre("The 40 best of the 60 values of x are shown."));
}

TEST(EffectsChart, HasNoColumnOfChanceWithoutATest) {
  EXPECT_THAT(Shown(grid({0.5, 0.6, 0.9, 0.5})).table("interactions").columns,
              ElementsAre("settings together", "share"));
}

TEST(ComparisonChart, HasBothSidesOfEachPair) {
  Runs runs;
  for (const std::int64_t size : {32, 64})
    for (const char* device : {"cuda:0", "cpu"})
      runs.push_back(graded({{"batch_size", size}}, 0.5,
                            device == std::string("cpu") ? 4 : 16.0 / static_cast<double>(size), device));
  const Shown shown(runs);
  EXPECT_THAT(shown.column("pairs", "side"), ElementsAre("cuda:0", "cpu", "cuda:0", "cpu"));
  EXPECT_THAT(shown.column("pairs", "seconds"), ElementsAre(0.5, 4.0, 0.25, 4.0));
  EXPECT_EQ(shown.column("pairs", "label")[0], "batch_size=32");
  EXPECT_EQ(shown.column("pairs", "ratio")[3], "cuda:0 is 16 times as fast");
  for (std::int64_t size = 65; size < 90; ++size)
    for (const char* device : {"cuda:0", "cpu"})
      runs.push_back(graded({{"batch_size", size}}, 0.5, 1, device));
  const Shown many(runs);
  EXPECT_EQ(many.table("pairs").rows.size(), 48u);
  EXPECT_THAT(many.charts.remarks, ElementsAre("The comparison shows 24 of 27 pairs."));
}

TEST(ComparisonChart, ComparesSweepsWithEachOtherAndTellsWhatElseDiffers) {
  Runs runs = {run_of(0.1, {1, 1}), of_sweep("runs/t", run_of(0.1, {1, 1}))};
  const Shown shown(runs);
  EXPECT_EQ(shown.data.title, "s and t");
  EXPECT_THAT(shown.data.keys, ElementsAre("sweep"));
  EXPECT_THAT(shown.column("pairs", "side"), ElementsAre("runs/s", "runs/t"));
  EXPECT_EQ(shown.column("pairs", "label")[0], "all");
  runs[1].record.epochs.pop_back();
  runs[1].record.jobs = 2;
  EXPECT_EQ(Shown(runs).column("pairs", "label")[0], "all (but 2 and 1 epochs)");
  EXPECT_THAT(Shown(runs).column("pairs", "text"), ElementsAre("1.00 s", "~1.00 s"));
}

TEST(ComparisonChart, SaysWhatTheTimesAreAndIsMissingWithoutThem) {
  Runs runs = {run_of(0.1, {1}, "cuda:0"), run_of(0.1, {1}, "cpu")};
  EXPECT_EQ(Shown(runs).signal("comparison", "title"), "time per epoch, s, median without the first");
  for (SourceRun& run : runs) run.record.epochs.clear();  // a program that reports nothing
  EXPECT_EQ(Shown(runs).signal("comparison", "title"), "time of the run, s");
  EXPECT_THAT(Shown({run_of(0.1, {1}), run_of(0.2, {1})}).ids(), Not(Contains("comparison"))) << "one device";
  runs = {run_of(0.1, {1}), of_sweep("runs/t", run_of(0.2, {1}))};
  for (SourceRun& run : runs) {  // only the metrics of the whole run
    run.record.epochs.clear();
    run.record.run_seconds.reset();
  }
  EXPECT_THAT(Shown(runs).ids(), Not(Contains("comparison")));
  EXPECT_THAT(Shown(runs).data.keys, ElementsAre("lr", "sweep"));
}

// Two epochs of 2 s, in each of which training waits for half a second.
SourceRun timed(double run_seconds) {
  SourceRun run = made_run({{"lr", run_seconds}}, "cpu", 2, {1.0, 0.5});
  for (EpochRecord& epoch : run.record.epochs) epoch.set("data_wait_seconds", 0.5);
  run.record.run_seconds = run_seconds;
  run.record.setup_seconds = 1;
  run.record.logging_seconds = 0.25;
  return run;
}

TEST(TimesChart, HasPartsThatAddUpToTheWholeRun) {
  Runs runs = {timed(8)};
  EXPECT_THAT(Shown(runs).column("parts", "part"),
              ElementsAre("computing", "waiting for data", "set-up", "logging", "validation and rest"));
  EXPECT_THAT(Shown(runs).column("parts", "seconds"), ElementsAre(3.0, 1.0, 1.0, 0.25, 2.75));
  for (EpochRecord& epoch : runs[0].record.epochs) epoch.set("communication_seconds", 0.75);
  runs.push_back(timed(6));
  const Shown shown(runs);
  ASSERT_EQ(shown.table("parts").rows.size(), 12u);
  EXPECT_EQ(shown.column("parts", "part")[2], "waiting for other devices");
  EXPECT_EQ(shown.column("parts", "seconds")[2], 1.5);
  EXPECT_EQ(shown.column("parts", "seconds")[0], 1.5);
}

TEST(TimesChart, HasOtherWordsForProgramsAndNoPartThatNoRunHas) {
  SourceRun program = timed(8), imported = timed(8);
  program.record.config = {{"command", {"train"}}};
  program.record.setup_seconds.reset();
  program.record.logging_seconds = 0;
  for (EpochRecord& epoch : program.record.epochs) epoch.set("data_wait_seconds", std::nullopt);
  for (EpochRecord& epoch : imported.record.epochs) epoch.set("epoch_seconds", std::nullopt);
  const Shown shown({program, imported});
  EXPECT_THAT(shown.column("parts", "part"), ElementsAre("until the last report", "after the last report"));
  EXPECT_THAT(shown.column("parts", "seconds"), ElementsAre(4.0, 4.0));
}

TEST(TimesChart, CountsStepsThatAreLeftOutOfTheRecord) {
  SourceRun run = timed(8);
  run.record.setup_seconds.reset();
  const auto end_at = [&run](int step) {
    run.record.epochs.back().set("step", step);
    run.record.epochs.back().set("run_seconds", 7);
    return Shown({run}).column("parts", "seconds");
  };
  EXPECT_THAT(end_at(1), ElementsAre(3.0, 1.0, 0.25, 3.75)) << "it only counts from 0";
  for (int epoch = 3; epoch <= 500; ++epoch) run.record.epochs.emplace_back(epoch);
  EXPECT_THAT(end_at(1000), ElementsAre(6.0, 1.0, 0.25, 0.75));
}

TEST(TimesChart, HasTheLongestOfManyRunsThatHaveEnded) {
  Runs runs;
  for (int i = 0; i < 42; ++i) runs.push_back(timed(8 + i));
  runs[41].record.run_seconds.reset();
  const Shown shown(runs);
  ASSERT_EQ(shown.table("parts").rows.size(), 200u);
  EXPECT_EQ(shown.column("parts", "run")[0], 40);
  EXPECT_EQ(shown.column("parts", "run")[199], 1);
  EXPECT_THAT(shown.charts.remarks, Contains("Times are those of the longest runs; 1 others are left out."));
}

const Goals kLowestLoss = {asked_goal("loss", false)};

ReportData searched(const Losses& losses) {
  Runs runs;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Params params = {{"lr", 0.001 * static_cast<double>(i + 1)}};
    if (i % 2 == 1) params.emplace_back("momentum", 0.1 * static_cast<double>(i));
    runs.push_back(made_run(std::move(params), "cpu", 1, {losses[i]}));
  }
  return report_data_of(std::move(runs), kLowestLoss, true);
}

TEST(SearchCharts, HaveTheBestSoFarOfWholeTrials) {
  ReportData data = searched({5, 3, 4, 1, 2});
  data.records[3].status = RunStatus::kPruned;
  data.records[4].status = RunStatus::kRunning;
  const Shown shown(std::move(data));
  EXPECT_THAT(shown.column("trials", "trial"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(shown.column("trials", "best"), ElementsAre(5, 3, 3, 3));
  EXPECT_THAT(shown.column("trials", "ended"), ElementsAre("completed", "completed", "completed", "pruned"));
  EXPECT_EQ(shown.chart("slice-1").title, "momentum");
  EXPECT_THAT(shown.column("trials", "axis1"), ElementsAre(nullptr, 0.1, nullptr, 0.1 * 3));
}

TEST(SearchCharts, AreOfSearchesAloneAndHaveOnePerSetting) {
  EXPECT_THAT(Shown(searched({5, 3, 4, 1, 2})).ids(),
              ElementsAre("curves-loss", "curves-accuracy", "progress", "importances", "slice-0", "slice-1",
                          "coordinates"));
  const Shown shown({keyed(0.1, 1), keyed(0.2, 1)});
  EXPECT_THAT(shown.ids(), Not(Contains(AnyOf("progress", "importances"))));
  EXPECT_EQ(headline(shown.data).command, "");
}

TEST(SearchCharts, AreCutIfAFewTrialsWouldStretchThem) {
  const auto highest = [](const Losses& losses) {
    return Shown(searched(losses)).signal("progress", "highest");
  };
  Losses losses(30);
  for (std::size_t i = 0; i < losses.size(); ++i) losses[i] = 1 + 0.01 * static_cast<double>(i);
  EXPECT_EQ(highest(losses), nullptr);
  EXPECT_EQ(highest({5, 3, 4, 100}), nullptr);
  EXPECT_NEAR(highest({5, 3, 4, 1e9}).get<double>(), 3 + 1.2 * 2, 1e-9);
  losses[7] = 1e9;
  EXPECT_NEAR(highest(losses).get<double>(), 1 + 1.2 * 0.28, 1e-9);
}

TEST(SearchCharts, ShowHowTheSettingsOfAPopulationChange) {
  ReportData data = searched({5, 3, 4, 1});
  EXPECT_THAT(Shown(data).ids(), Not(Contains("schedule-0")));
  for (RunRecord& record : data.records) record.epochs = {EpochRecord(2), EpochRecord(6)};
  data.records[0].epochs.pop_back();
  data.records[0].status = RunStatus::kPruned;
  data.records[1].config[std::string(kLineageKey)] =
      to_json(Lineage{{"first", 2, {{"lr", 0.1}, {"optimizer", "sgd"}}}, {"second", 4, {{"lr", 0.2}}}});
  const Shown shown(std::move(data));
  EXPECT_EQ(shown.chart("schedule-0").title, "lr");
  EXPECT_EQ(shown.chart("schedule-1").title, "momentum") << "which the others do not have";
  EXPECT_THAT(shown.column("schedules", "run"), ElementsAre(0, 0, 1, 1, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(shown.column("schedules", "epoch"), ElementsAre(0, 2, 0, 2, 4, 6, 0, 6, 0, 6));
  EXPECT_THAT(shown.column("schedules", "axis0"),
              ElementsAre(0.001, 0.001, 0.1, 0.2, 0.002, 0.002, 0.003, 0.003, 0.004, 0.004));
  EXPECT_THAT(shown.column("schedules", "ended"), Contains("pruned").Times(2));
}

}  // namespace sweep::answer_charts_test
