#include "runmanager/answers/comparison.h"

#include "runmanager/answers/statistics.h"
#include "tests/runmanager/answers/made_runs.h"
#include "tests/support/growth.h"

namespace sweep::comparison_test {

// Two learning rates on two devices, which are four and nine times as fast as the CPU.
std::vector<SourceRun> grid() {
  return {made_run({{"lr", 0.1}}, "cpu", 4, {2, 1}), made_run({{"lr", 0.1}}, "cuda:0", 1, {2, 1.25}),
          made_run({{"lr", 0.01}}, "cpu", 9, {3, 2}), made_run({{"lr", 0.01}}, "cuda:0", 1, {3, 2})};
}

std::string text_of(const std::vector<SourceRun>& runs, const std::string& metric = "") {
  return comparison_text(compare_runs(runs, "", metric), {TableFormat::kText, true});
}

ComparedPair first_pair(const std::vector<SourceRun>& runs) {
  return compare_runs(runs, "", "").values.at(0).pairs.at(0);
}

TEST(Comparison, SaysHowManyTimesAsFastOrHowFarApart) {
  std::vector<SourceRun> runs = grid();
  for (const std::size_t i : {1, 3}) runs[i].record.metrics["test_accuracy"] = 0.75;
  const std::pair<const char*, const char*> cases[] = {
      {"", "cuda:0 is 6.00 times as fast as cpu in epoch_seconds (geometric mean of 2 pairs; 95% "},
      {"images_per_second", "cuda:0 is 6.00 times as fast as cpu in images_per_second"},
      {"loss", "loss of cuda:0 against cpu: +0.125 (mean of 2 pairs"},
      {"test_accuracy", "+25.00 points (mean of 2 pairs"}};
  for (const auto& [metric, sentence] : cases) EXPECT_THAT(text_of(runs, metric), HasSubstr(sentence));
  const std::vector<ComparedValue> values = compare_runs(runs, "device", "").values;
  ASSERT_THAT(values, SizeIs(1));
  EXPECT_DOUBLE_EQ(values[0].ratio.value().mean, 6);  // sqrt(4 * 9)
  EXPECT_EQ(values[0].pairs[1].ratio, 9);
  EXPECT_DOUBLE_EQ(compare_runs(runs, "", "loss").values[0].difference.value().mean, 0.125);
  EXPECT_THAT(text_of({made_run({{"num_workers", std::int64_t{0}}}, "cpu", 1),
                       made_run({{"num_workers", std::int64_t{2}}}, "cpu", 2)}),
              HasSubstr("num_workers=0 is 2.00 times as fast as num_workers=2"));
}

// Each run has another value, as with a range.
TEST(Comparison, TakesTimeThatIsLinearInTheValues) {
  const double times = test::growth(
      [](std::size_t values) {
        std::vector<SourceRun> runs;
        for (std::size_t i = 0; i < values; ++i)
          runs.push_back(made_run({{"lr", static_cast<double>(i)}}, "cpu", 1));
        EXPECT_THAT(compare_runs(runs, "lr", "").values, SizeIs(values - 1));
      },
      1000);
  EXPECT_LT(times, test::kLinearGrowth);
}

TEST(Comparison, CountsManyRunsThatWereLeftOut) {
  std::vector<SourceRun> runs = grid();
  runs.insert(runs.end(), 4, made_run({}, "cuda:1", 1));
  for (std::size_t i = 4; i < runs.size(); ++i) runs[i].record.status = RunStatus::kSkipped;
  EXPECT_THAT(text_of(runs), HasSubstr("left out: 4 runs, the first of them runs/s/cuda:1: skipped\n"));
}

TEST(Comparison, LeavesOutWhatANarrowTerminalHasNoRoomFor) {
  const Comparison comparison = compare_runs(grid(), "device", "");
  const std::string narrow = comparison_text(comparison, {TableFormat::kText, true, 70});
  EXPECT_THAT(narrow, HasSubstr("\n  not shown for lack of width: data wait, first epoch"));
  EXPECT_THAT(narrow, HasSubstr(" largest loss difference\n"));
  EXPECT_LE(testing::widest_line(narrow), 70);
  EXPECT_THAT(comparison_text(comparison, {TableFormat::kText, true}), Not(HasSubstr("not shown")));
}

TEST(Comparison, TheFirstEpochIsApart) {
  std::vector<SourceRun> runs = grid();
  runs[0].record.epochs[0].set("epoch_seconds", 100);
  const ComparedPair pair = first_pair(runs);
  EXPECT_EQ(pair.metric.base, 4);
  EXPECT_EQ(pair.first_epoch.base, 100);
}

TEST(Comparison, AMachineThatIsNotDescribedByTextsHasNoName) {
  std::vector<SourceRun> runs = grid();
  runs[0].record.provenance = {{"machine", {{"host", "a"}, {"processor", 3}}}};
  runs[1].record.provenance = {{"machine", {{"host", nullptr}, {"processor", "p"}}}};
  EXPECT_THAT(first_pair(runs).notes, ElementsAre("on other machines: a, ; , p"));
}

TEST(Comparison, ShowsHowFarTheCurvesAreApart) {
  const std::vector<ComparedPair> pairs = compare_runs(grid(), "device", "").values[0].pairs;
  EXPECT_FALSE(pairs[0].curves.same_bits);
  EXPECT_EQ(pairs[0].curves.largest_loss_difference, 0.25);
  EXPECT_EQ(pairs[0].curves.epoch, 2);
  EXPECT_TRUE(pairs[1].curves.same_bits);
}

TEST(Comparison, ComparesProgramsAtTheSameStep) {
  std::vector<SourceRun> runs = {made_run({}, "cpu", 1, {8, 4, 2, 1}), made_run({}, "cuda:0", 1, {4, 1.5})};
  for (EpochRecord& epoch : runs[1].record.epochs) epoch.set("step", 2 * epoch.epoch);
  const CurveParity curves = first_pair(runs).curves;
  EXPECT_EQ(curves.epochs, 2u);
  EXPECT_EQ(curves.largest_loss_difference, 0.5);
  EXPECT_EQ(curves.epoch, 4);
  EXPECT_FALSE(curves.same_bits);
  EXPECT_THAT(text_of(runs), HasSubstr("0.5 in step 4"));
}

TEST(Comparison, NaNInBothCurvesIsTheSameAndInOneIsNot) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<SourceRun> runs = {made_run({}, "cpu", 1, {1, kNaN, 2}),
                                 made_run({}, "cuda:0", 1, {1, kNaN, 2})};
  EXPECT_TRUE(first_pair(runs).curves.same_bits);
  runs[1].record.epochs[1].set("loss", 5);
  const CurveParity curves = first_pair(runs).curves;
  EXPECT_FALSE(curves.same_bits);
  EXPECT_TRUE(std::isnan(curves.largest_loss_difference.value()));
  EXPECT_EQ(curves.epoch, 2);
}

TEST(Comparison, APersonsOwnMetricsCountAsCurvesAndALossIsNotNeeded) {
  std::vector<SourceRun> runs = {made_run({}, "cpu", 1), made_run({}, "cuda:0", 1)};
  for (SourceRun& run : runs) run.record.epochs = {{1, {{"score", 3}, {"epoch_seconds", 1}}}};
  EXPECT_TRUE(first_pair(runs).curves.same_bits);
  runs[1].record.epochs[0].set("score", 5);
  EXPECT_FALSE(first_pair(runs).curves.same_bits);
  EXPECT_EQ(first_pair(runs).curves.largest_loss_difference, std::nullopt);
  runs[0].record.epochs[0].set("score", std::nullopt);
  EXPECT_FALSE(first_pair(runs).curves.same_bits);
}

TEST(Comparison, WhatElseDiffersIsSaid) {
  std::vector<SourceRun> runs = {made_run({}, "cpu", 1), made_run({}, "cuda:0", 1, {1, 2})};
  runs[0].record.config = {{"lr", 0.1}, {"optimizer", {{"name", "sgd"}}}};
  runs[1].record.config = {{"lr", 0.2}, {"optimizer", {{"name", "sgd"}}}};
  runs[0].record.provenance = {{"machine", {{"host", "a"}, {"processor", "p"}}}};
  runs[1].record.provenance = {{"machine", {{"host", "b"}, {"processor", "p"}}}};
  EXPECT_THAT(first_pair(runs).notes,
              ElementsAre("lr: 0.1 -> 0.2", "1 and 2 epochs", "on other machines: a, p; b, p"));
}

TEST(Comparison, TheKeysOwnArgumentsAreNoDifference) {
  std::vector<SourceRun> runs = {made_run({{"optimizer", std::string("sgd")}}, "cpu", 1),
                                 made_run({{"optimizer", std::string("adam")}}, "cpu", 1)};
  runs[0].record.config = {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}};
  runs[1].record.config = {{"optimizer", {{"name", "adam"}, {"eps", 1e-8}}}};
  EXPECT_THAT(first_pair(runs).notes, IsEmpty());
}

TEST(Comparison, TimesOfRunsThatSharedTheMachineAreMarked) {
  std::vector<SourceRun> runs = grid();
  EXPECT_THAT(text_of(runs), Not(HasSubstr("~")));
  runs[0].record.jobs = 2;
  const std::string text = text_of(runs);
  EXPECT_THAT(text, HasSubstr("~ timed while runs shared"));
  EXPECT_EQ(std::ranges::count(text, '~'), 2) << "that run's time and the remark:\n" << text;
}

TEST(Comparison, AMetricThatNoRunHasIsRefused) {
  EXPECT_THAT(test::message_of<ConfigError>([] { compare_runs(grid(), "device", "acuracy"); }),
              HasSubstr("Did you mean \"accuracy\"?"));
}

TEST(Comparison, CsvAndJsonHoldPlainNumbers) {
  const Comparison comparison = compare_runs(grid(), "device", "");
  EXPECT_THAT(
      comparison_text(comparison, {TableFormat::kCsv, true}),
      HasSubstr(
          "device,cpu,cuda:0,runs/s/lr;cpu,runs/s/lr;cuda:0,epoch_seconds,4,1,4,4,1,,,0,0,false,0.25,1,\n"));
  const auto json = comparison_json(comparison);
  EXPECT_EQ(json["values"][0]["pairs"][1]["ratio"], 9.0);
  EXPECT_EQ(json["values"][0]["pairs"][1]["curves"]["same_bits"], true);
  EXPECT_EQ(json["values"][0]["pairs"][0]["settings"]["lr"], "0.1");
}

TEST(Comparison, MarkdownAndLatexEscapeTheirOwnCharacters) {
  const Comparison comparison = compare_runs(
      {made_run({{"a_b", std::string("x|y")}}, "cpu", 1), made_run({{"a_b", std::string("z&")}}, "cpu", 1)},
      "a_b", "");
  EXPECT_THAT(comparison_text(comparison, {TableFormat::kMarkdown, true}), HasSubstr("x&#124;y"));
  EXPECT_THAT(comparison_text(comparison, {TableFormat::kLatex, true}), HasSubstr("z\\&"));
}

TEST(Statistics, TheIntervalOfAMeanIsStudents) {
  // scipy.stats.t.interval(0.95, 3, loc=2.5, scale=scipy.stats.sem([1, 2, 3, 4]))
  const auto estimate = mean_of(std::vector<double>{1, 2, 3, 4});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_EQ(estimate->count, 4u);
  EXPECT_DOUBLE_EQ(estimate->mean, 2.5);
  EXPECT_NEAR(estimate->interval->first, 0.4457397432391, 1e-10);
  EXPECT_NEAR(estimate->interval->second, 4.5542602567609, 1e-10);
}

TEST(Statistics, TheIntervalOfAGeometricMeanIsThatOfTheLogarithms) {
  const auto estimate = geometric_mean_of(std::vector<double>{1, 10, 100});
  ASSERT_TRUE(estimate && estimate->interval);
  EXPECT_NEAR(estimate->mean, 10, 1e-12);
  EXPECT_NEAR(estimate->interval->first * estimate->interval->second, 100, 1e-9);
  EXPECT_NEAR(estimate->interval->second, 3049.0, 1.0);
}

TEST(Statistics, OneValueHasNoIntervalAndWhatIsNotAboveZeroNoGeometricMean) {
  const auto estimate = mean_of(std::vector<double>{3});
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->mean, 3);
  EXPECT_FALSE(estimate->interval);
  EXPECT_FALSE(mean_of({}));
  for (const std::vector<double>& values :
       {std::vector<double>{1, 0}, {1, -2}, {std::numeric_limits<double>::quiet_NaN()}, {}})
    EXPECT_FALSE(geometric_mean_of(values));
}

}  // namespace sweep::comparison_test
