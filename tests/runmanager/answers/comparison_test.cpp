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

// Titles that are cut would be the same, and long values push all else out.
TEST(Comparison, CutsLongValuesAndNamesForANarrowTerminal) {
  const std::string same(60, 'x'), other = "b" + same;
  std::vector<SourceRun> runs;
  for (const char* file : {"/data/one/a.json", "/data/one/b.json"})
    for (const std::string& optimizer : {"a" + same, other})
      runs.push_back(made_run({{"optimizer", optimizer}, {"file", same + file}}, "cpu", 1));
  const Comparison comparison = compare_runs(runs, "optimizer", "");
  const std::string narrow = comparison_text(comparison, {TableFormat::kText, true, 60});
  EXPECT_THAT(narrow,
              AllOf(StartsWith("optimizer:\n" + other + " (other)"), HasSubstr(" (base), epoch_seconds\n"),
                    HasSubstr("\n  file                base   other  base / other"),
                    HasSubstr("\n  …data/one/a.json  "), HasSubstr("\n  …data/one/b.json  ")));
  EXPECT_LE(testing::widest_line(narrow.substr(narrow.find("\n  file"), 200)), 60);
  const std::string wide = comparison_text(comparison, {TableFormat::kText, true});
  EXPECT_THAT(wide, AllOf(HasSubstr("  optimizer=a"), HasSubstr("  " + same + "/data/one/a.json  ")));
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

TEST(Comparison, SaysInHowManyEpochsLossesAreEqualIfOneRunHasMore) {
  EXPECT_THAT(text_of({made_run({}, "cpu", 1, {3, 2, 1}), made_run({}, "cuda:0", 1, {3, 2})}),
              HasSubstr(" 0 in 2 epochs  but 3 and 2 epochs\n"));
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

// Two learning rates on a device that the run asks for, and names as it was found.
std::vector<SourceRun> devices_and_rates(const std::vector<std::string>& sources = {"runs/s", "runs/s"}) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1, 0.01}) {
    runs.push_back(made_run({{"lr", lr}, {"device", "cpu"}}, "cpu", 2, {1.0}, sources[0]));
    runs.push_back(made_run({{"lr", lr}, {"device", "cuda"}}, "cuda:0", 1, {1.0}, sources[1]));
  }
  return runs;
}

// A run for each value of the only setting.
std::vector<SourceRun> optimizers(const std::vector<std::string>& names) {
  std::vector<SourceRun> runs;
  for (const std::string& name : names) runs.push_back(made_run({{"optimizer", name}}, "cpu", 1));
  return runs;
}

TEST(Pairs, AreOfRunsThatDifferOnlyInTheKey) {
  const Comparison pairs = compare_runs(devices_and_rates(), "", "");
  EXPECT_EQ(pairs.key, "device");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_EQ(pairs.values[0].base, "cpu");
  EXPECT_EQ(pairs.values[0].other, "cuda:0");
  ASSERT_THAT(pairs.values[0].pairs, SizeIs(2));
  EXPECT_THAT(pairs.values[0].pairs[0].settings, ElementsAre(Pair("lr", "0.1")));
  EXPECT_EQ(pairs.values[0].pairs[1].runs.base, "runs/s/lr;device;cpu");
  EXPECT_EQ(pairs.values[0].pairs[1].runs.other, "runs/s/lr;device;cuda:0");
  EXPECT_THAT(pairs.alone, IsEmpty());
}

TEST(Pairs, AreOfEveryValueWithTheFirst) {
  const Comparison pairs = compare_runs(optimizers({"sgd", "adam", "rmsprop"}), "optimizer", "");
  ASSERT_THAT(pairs.values, SizeIs(2));
  EXPECT_EQ(pairs.values[1].base, "sgd");
  EXPECT_EQ(pairs.values[1].other, "rmsprop");
}

TEST(Pairs, LeaveOutUnfinishedRunsAndThoseWithoutAPartnerByName) {
  std::vector<SourceRun> runs = devices_and_rates();
  runs[3].record.status = RunStatus::kSkipped;
  const Comparison pairs = compare_runs(runs, "device", "");
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(1));
  EXPECT_THAT(pairs.alone, ElementsAre("runs/s/lr;device;cpu"));
  EXPECT_THAT(pairs.unfinished, ElementsAre("runs/s/lr;device;cuda:0: skipped"));
}

TEST(Pairs, OfSweepsWithPartsOfTheComparisonAreAcross) {
  EXPECT_THAT(compare_runs(devices_and_rates({"runs/here", "runs/there"}), "device", "").values[0].pairs,
              SizeIs(2));
}

TEST(Pairs, OfSweepsWithAllOfTheComparisonAreWithin) {
  std::vector<SourceRun> runs = devices_and_rates();
  std::ranges::copy(devices_and_rates({"runs/again", "runs/again"}), std::back_inserter(runs));
  const std::vector<ComparedPair> pairs = compare_runs(runs, "device", "").values[0].pairs;
  ASSERT_THAT(pairs, SizeIs(4));
  for (const ComparedPair& pair : pairs)
    EXPECT_EQ(pair.runs.base.starts_with("runs/again/"), pair.runs.other.starts_with("runs/again/"));
  EXPECT_THAT(compare_runs(runs, "sweep", "").values[0].pairs, SizeIs(4));
}

TEST(Pairs, AreAlsoOfImportedRunsWhichHaveNoDevice) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1, 0.2}) {
    runs.push_back(made_run({{"lr", lr}}, "cpu", 1));
    runs.back().record.config["repeat"] = 0;
    runs.push_back(made_run({{"lr", lr}}, "", 1, {1.0}, "runs/imported"));
  }
  const Comparison pairs = compare_runs(runs, std::string(kSweepKey), "");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(2));
  EXPECT_THAT(pairs.alone, IsEmpty());
}

TEST(Pairs, ReadAConstantFromTheConfigurationOfASweepThatDoesNotVaryIt) {
  std::vector<SourceRun> runs = {made_run({{"momentum", 0.5}}, "cpu", 1, {1.0}, "runs/a"),
                                 made_run({}, "cpu", 1, {1.0}, "runs/b")};
  runs[1].record.config = {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}};
  EXPECT_EQ(setting_text(runs[1], "optimizer"), "sgd");
  const Comparison pairs = compare_runs(runs, "momentum", "");
  ASSERT_THAT(pairs.values, SizeIs(1));
  EXPECT_EQ(pairs.values[0].other, "0.9");
  EXPECT_THAT(pairs.values[0].pairs, SizeIs(1));
}

TEST(Pairs, TellWhichSettingsOnlyOneValueHas) {
  std::vector<SourceRun> runs = optimizers({"sgd", "sgd", "adam"});
  for (const std::size_t i : {0, 1})
    runs[i].record.params.emplace_back("momentum", 0.9 * static_cast<double>(i));
  const Comparison pairs = compare_runs(runs, "optimizer", "");
  EXPECT_THAT(pairs.values.at(0).pairs, IsEmpty());
  EXPECT_THAT(pairs.values.at(0).of_one, ElementsAre("momentum"));
}

TEST(Pairs, NeedTheKeyIfSeveralVary) {
  std::vector<SourceRun> runs = {made_run({{"lr", 0.1}, {"shuffle", true}}, "cpu", 1),
                                 made_run({{"lr", 0.2}, {"shuffle", false}}, "cpu", 1)};
  const auto message = [&](const char* key) {
    return message_of<ConfigError>([&] { compare_runs(runs, key, ""); });
  };
  EXPECT_THAT(message(""), HasSubstr("--by: lr, shuffle"));
  EXPECT_THAT(message("shufle"), HasSubstr("Did you mean \"shuffle\"?"));
  runs.pop_back();
  EXPECT_THAT(message(""), HasSubstr("nothing to compare"));
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
