#include "runmanager/report/page_parts.h"

#include "tests/runmanager/answers/made_runs.h"
#include "tests/support/test.h"

namespace sweep::headline_test {

using testing::made_run;

SourceRun graded(Params params, double accuracy, const std::string& device = "cpu", double seconds = 1) {
  SourceRun run = made_run(std::move(params), device, seconds, {1.0, 0.5});
  for (EpochRecord& epoch : run.record.epochs) epoch.set("validation_accuracy", accuracy);
  run.record.metrics.clear();
  return run;
}

TEST(Headline, SaysWhichRunIsBestAndWhatChangesIt) {
  const Headline answer = headline(report_data_of({graded({{"lr", 0.1}, {"size", std::int64_t{1}}}, 0.5),
                                                   graded({{"lr", 0.1}, {"size", std::int64_t{2}}}, 0.5),
                                                   graded({{"lr", 0.01}, {"size", std::int64_t{1}}}, 0.9),
                                                   graded({{"lr", 0.01}, {"size", std::int64_t{2}}}, 0.9)}));
  EXPECT_EQ(answer.best, "Best of 4 runs: 90.00% validation accuracy with lr=0.01, size=1.");
  EXPECT_THAT(answer.more, ElementsAre("What matters most is lr: 0.01 is best with 90.00% on average, 0.1 "
                                       "worst with 50.00% (100% of all differences).",
                                       "size changes the validation accuracy hardly at all."));
}

TEST(Headline, EqualResultsAreNoDifference) {
  std::vector<SourceRun> runs = {graded({{"lr", 10.0}}, 0.1), graded({{"lr", 5.0}}, 0.1),
                                 graded({{"lr", 2.0}}, 0.1)};
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i].record.epochs[1].set("loss", static_cast<double>(i));  // so that lr changes something
  EXPECT_THAT(headline(report_data_of(runs)).more,
              ElementsAre("lr changes the validation accuracy hardly at all."));
}

TEST(Headline, LeavesOutKeysThatTheBestRunLacks) {
  const Headline answer = headline(report_data_of(
      {graded({{"optimizer", "adam"}}, 0.9), graded({{"optimizer", "sgd"}, {"momentum", 0.5}}, 0.5)}));
  EXPECT_EQ(answer.best, "Best of 2 runs: 90.00% validation accuracy with optimizer=adam.");
}

TEST(Headline, ShortensFractionsOfManyDigitsButNoWholeNumbers) {
  const auto best_of = [](ParamValue a, ParamValue b) {
    return headline(
               report_data_of({graded({{"key", std::move(a)}}, 0.9), graded({{"key", std::move(b)}}, 0.5)}))
        .best;
  };
  EXPECT_THAT(best_of(0.003307741013633609, 0.1), HasSubstr("with key=0.003308."));
  EXPECT_THAT(best_of(std::int64_t{1000000001}, std::int64_t{1}), HasSubstr("with key=1000000001."));
}

TEST(Headline, TellsHowMuchFasterADeviceIs) {
  const Headline answer = headline(
      report_data_of({graded({{"lr", 0.1}}, 0.5, "cuda:0", 1), graded({{"lr", 0.1}}, 0.5, "cpu", 12)}));
  EXPECT_THAT(answer.more.back(), HasSubstr("cuda:0 trains 12 times as fast as cpu (1 pair of runs)"));
}

TEST(Headline, TellsTheBestMeanOverRepeats) {
  const auto repeated = [](double lr, std::int64_t repeat, double accuracy) {
    return graded({{"lr", lr}, {"repeat", repeat}}, accuracy);
  };
  const Headline answer = headline(report_data_of(
      {repeated(0.1, 0, 0.95), repeated(0.1, 1, 0.5), repeated(0.01, 0, 0.8), repeated(0.01, 1, 0.9)}));
  EXPECT_EQ(answer.best, "Best of 4 runs: 95.00% validation accuracy with lr=0.1, repeat=0.");
  EXPECT_EQ(answer.more.front(), "Best mean of 2 repeats: 85.00% ± 7.07% with lr=0.01.");
}

TEST(Headline, JudgesByTheGoalOfTheSweep) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1, 0.2})
    for (const std::int64_t repeat : {0, 1}) {
      runs.push_back(made_run({{"lr", lr}, {"repeat", repeat}}, "cpu", 1));
      runs.back().record.metrics["score"] = 10 * lr + 0.01 * static_cast<double>(repeat);
    }
  const Headline answer = headline(report_data_of(runs, {asked_goal("score", true)}));
  EXPECT_EQ(answer.best, "Best of 4 runs: 2.0100 score (50.00% test accuracy) with lr=0.2, repeat=1.");
  EXPECT_THAT(answer.more, ElementsAre(HasSubstr("2.0050 ± 0.0071 with lr=0.2"),
                                       HasSubstr("lr: 0.2 is best with 2.0050 on average, 0.1 worst")));
}

TEST(Headline, SaysWhyThereIsNoBestRun) {
  SourceRun running = graded({{"lr", 0.1}}, 0.5);
  running.record.status = RunStatus::kRunning;
  EXPECT_EQ(headline(report_data_of({running})).best, "No run is completed yet.");
  EXPECT_EQ(headline(report_data_of({})).best, "There are no runs.");
}

TEST(RunNotes, AreALinePerReasonAndFailuresAreFirst) {
  std::vector<SourceRun> runs = {graded({{"lr", 0.1}}, 0.5)};
  for (int i = 0; i < 3; ++i) {
    SourceRun skipped = made_run({}, "cuda", 1, {});
    skipped.record.status = RunStatus::kSkipped;
    skipped.record.error = "no driver\nmore of it";
    runs.push_back(skipped);
  }
  SourceRun failed = made_run({}, "cpu", 1, {});
  failed.record.status = RunStatus::kFailed;
  failed.record.error = "the loss is not finite";
  runs.push_back(failed);
  EXPECT_THAT(run_notes(report_data_of(runs)),
              ElementsAre("1 run failed: the loss is not finite", "3 runs skipped: no driver"));
}

}  // namespace sweep::headline_test
