// The number by which a run is judged, and which run is the best.
#include "runmanager/records/judge.h"

#include "runmanager/records/run_metric.h"
#include "tests/support/test.h"

namespace sweep::judge_test {

using Json = nlohmann::ordered_json;

RunRecord completed(std::initializer_list<std::pair<std::string_view, std::optional<double>>> last,
                    RunStatus status = RunStatus::kCompleted) {
  RunRecord record;
  record.status = status;
  record.epochs = {EpochRecord(1, last)};
  return record;
}

std::optional<std::size_t> best_by_default(const std::vector<RunRecord>& runs) {
  return best_run(runs, default_goals(runs));
}

TEST(BestRun, IsTheCompletedOneWithTheHighestValidationAccuracyIfNobodySays) {
  const std::vector<RunRecord> runs = {
      completed({{"loss", 0.1}, {"accuracy", 0.9}, {"validation_accuracy", 0.5}}),
      completed({{"loss", 0.4}, {"accuracy", 0.6}, {"validation_accuracy", 0.6}}),
      completed({{"loss", 0}, {"accuracy", 1}, {"validation_accuracy", 0.99}}, RunStatus::kInterrupted),
      completed({}, RunStatus::kSkipped)};
  EXPECT_EQ(best_by_default(runs), 1u);
  EXPECT_EQ(goal_text(default_goals(runs)), "highest validation accuracy");
}

TEST(BestRun, FallsBackOnTheTrainingAccuracyAndIgnoresNan) {
  EXPECT_EQ(best_by_default({completed({{"loss", 0.5}, {"accuracy", 0.5}}),
                             completed({{"loss", 0.3}, {"accuracy", 0.75}}),
                             completed({{"loss", 0.2}, {"accuracy", 0.75}})}),
            2u)
      << "the lower loss of equal ones";
  EXPECT_EQ(best_by_default({completed({{"loss", 0.1}, {"validation_accuracy", std::nan("")}}),
                             completed({{"loss", 0.1}, {"validation_accuracy", 0.2}})}),
            1u);
  EXPECT_EQ(best_by_default({completed({{"loss", -INFINITY}}), completed({{"loss", 0.1}})}), 1u);
  EXPECT_EQ(best_by_default({completed({{"loss", 0.5}}, RunStatus::kFailed)}), std::nullopt);
  EXPECT_EQ(best_by_default({}), std::nullopt);
  EXPECT_EQ(best_by_default({completed({{"loss", 9}, {"validation_rmse", 3}}),
                             completed({{"loss", 2}, {"validation_rmse", 2.5}}),
                             completed({{"loss", 1}, {"validation_rmse", 4}})}),
            1u)
      << "of numbers the lowest error, whatever its loss";
}

TEST(BestRun, IsTheOneThatTheSearchAsksFor) {
  const std::vector<RunRecord> runs = {completed({{"validation_loss", 0.5}, {"validation_accuracy", 0.9}}),
                                       completed({{"validation_loss", 0.25}, {"validation_accuracy", 0.8}}),
                                       completed({{"validation_loss", 0.75}, {"validation_accuracy", 0.7}})};
  EXPECT_EQ(best_by_default(runs), 0u);
  const auto best = [&runs](const Json& search) {
    return best_run(runs, recorded_goals({{"search", search}}));
  };
  EXPECT_EQ(best({{"method", "random"}}), 1u) << "the default of a search is the loss";
  EXPECT_EQ(best({{"metric", "Loss/validation"}, {"mode", "max"}}), 2u);
  EXPECT_EQ(best({{"metric", "Accuracy/validation"}}), 0u);
  EXPECT_EQ(recorded_goals({{"runs", Json::array()}}), Goals());
  EXPECT_EQ(best_run(runs, SearchSpec().goals), 1u);
  EXPECT_EQ(goal_text(SearchSpec().goals), "lowest validation loss");
}

TEST(FrontRuns, AreThoseThatNoOtherBeatsInAllGoals) {
  std::vector<RunRecord> runs = {completed({{"accuracy", 0.5}, {"own", 1}}),
                                 completed({{"accuracy", 0.9}, {"own", 9}}),
                                 completed({{"accuracy", 0.9}, {"own", 8}}),
                                 completed({{"accuracy", 0.4}, {"own", 2}}),
                                 completed({{"accuracy", 1}, {"own", 0}}, RunStatus::kFailed),
                                 completed({{"accuracy", 1}}),
                                 completed({{"accuracy", 0.95}, {"own", std::nan("")}})};
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].name = std::to_string(i);
  const Goals goals = recorded_goals({{"search", {{"metric", {"Accuracy/train", "own"}}}}});
  EXPECT_THAT(front_runs(runs, goals), ElementsAre(2, 0));
  EXPECT_EQ(best_run(runs, goals), 2u) << "the best by the first goal that is in the front";
  EXPECT_EQ(goal_text(goals), "highest training accuracy, the first of 2 goals");
  EXPECT_EQ(goal_names(goals), "training accuracy and own");
  const Json larger = {{"metric", {"own", "Accuracy/train"}}, {"mode", {"max", "max"}}};
  EXPECT_THAT(front_runs(runs, recorded_goals({{"search", larger}})), ElementsAre(1));
  EXPECT_THAT(front_runs(runs, default_goals(runs)), ElementsAre());
  put_front_first(runs, goals);
  std::string order;
  for (const RunRecord& run : runs) order += run.name;
  EXPECT_EQ(order, "2013456");
}

TEST(Goals, AModeAloneIsThatOfTheMetricTakenByDefault) {
  const std::vector<RunRecord> runs = {completed({{"score", 1}}), completed({{"score", 3}})};
  const Goals asked = recorded_goals({{"command", {"true"}}, {"mode", "max"}});
  EXPECT_EQ(best_run(runs, default_goals(runs, asked)), 1u);
  EXPECT_EQ(goal_text(default_goals(runs, asked)), "highest score");
  EXPECT_EQ(best_run(runs, default_goals(runs)), 0u);
}

TEST(Goals, ASearchWithoutItsOwnGoesByTheObjectiveOfAProgram) {
  nlohmann::ordered_json file = {
      {"command", {"true"}}, {"objective", "own"}, {"mode", "max"}, {"search", {{"method", "tpe"}}}};
  EXPECT_EQ(recorded_goals(file), Goals{asked_goal("own", true)});
  file["search"]["metric"] = {"loss", "own"};
  EXPECT_EQ(recorded_goals(file), (Goals{asked_goal("loss", false), asked_goal("own", true)}));
  file["search"] = {{"metric", "own"}, {"mode", "min"}};
  EXPECT_EQ(recorded_goals(file), Goals{asked_goal("own", false)});
  file.erase("objective");
  EXPECT_EQ(recorded_goals(file), Goals{asked_goal("own", false)});
  file["search"] = {{"method", "tpe"}};
  EXPECT_EQ(recorded_goals(file), Goals{asked_goal("loss", true)});
}

TEST(Goals, OfAMetricAreThoseOfTheSweepOrElseTheMetricsOwn) {
  const Goals goals = recorded_goals({{"objective", {"own", "loss"}}, {"mode", {"max", "min"}}});
  EXPECT_EQ(goals, (Goals{asked_goal("own", true), asked_goal("Loss/train", false)}));
  EXPECT_NE(goals, (Goals{asked_goal("own", false), asked_goal("Loss/train", false)}));
  EXPECT_TRUE(goal_for(metric_named("own"), goals).largest_is_best);
  EXPECT_FALSE(goal_for(metric_named("own"), {}).largest_is_best);
  EXPECT_TRUE(goal_for(metric_named("accuracy"), goals).largest_is_best);
}

TEST(RunMetric, ParametersAreThoseOfTheRunsNetwork) {
  RunRecord run = completed({{"loss", 1}});
  EXPECT_EQ(run_metric(run, "parameters"), std::nullopt);
  run.provenance = {{"parameters", 101770}};
  EXPECT_EQ(run_metric(run, "parameters"), 101770);
  EXPECT_EQ(metric_text(metric_named("parameters"), 101770), "102k");
  run.epochs[0].set("parameters", 7);
  EXPECT_EQ(run_metric(run, "parameters"), 7) << "of a program that says so";
}

TEST(RunMetric, OfTimesIsTheMedianWithoutTheFirstEpoch) {
  RunRecord timed;
  for (const double seconds : {100.0, 1.0, 2.0, 9.0})
    timed.epochs.push_back({static_cast<int>(timed.epochs.size()) + 1, {{"epoch_seconds", seconds}}});
  EXPECT_EQ(run_metric(timed, kEpochSeconds), 2);
  timed.epochs.resize(1);
  EXPECT_EQ(run_metric(timed, kEpochSeconds), 100) << "the only one";
  timed.epochs.clear();
  EXPECT_EQ(run_metric(timed, kEpochSeconds), std::nullopt);
  EXPECT_EQ(median_of({5, 1, 3}), 3);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median_of({}), std::nullopt);
}

TEST(MeasuredMetrics, FollowTheirDefinitions) {
  Totals totals;
  totals.samples = 2;
  totals.numbers = 4;  // errors 1, −2, 2, 1
  totals.absolute_error = 6;
  totals.squared_error = 10;
  totals.loss = 1;
  const auto measured = [&totals](double variation, MetricPart part) {
    std::map<std::string, double> values;
    for (const auto& [metric, value] : measured_metrics(totals, variation, part))
      values[std::string(metric->key)] = value;
    return values;
  };
  using Values = std::map<std::string, double>;
  EXPECT_EQ(measured(40, MetricPart::kTraining),
            (Values{{"loss", 0.5}, {"mae", 1.5}, {"rmse", std::sqrt(2.5)}, {"r2", 0.75}}));
  EXPECT_FALSE(measured(0, MetricPart::kTest).contains("test_r2"));
  totals = {.loss = 2, .correct = 1, .samples = 8, .ranked = 8, .in_top = 6};
  EXPECT_EQ(measured(0, MetricPart::kTest),
            (Values{{"test_loss", 0.25}, {"test_accuracy", 0.125}, {"test_top5_accuracy", 0.75}}));
  const std::vector<float> targets{9, 9, 1, 10, 3, 10, 5, 40};  // two columns; the last three rows count
  const auto set = std::make_shared<TensorDataset>(TensorDataset{{1}, std::vector<float>(4), targets});
  EXPECT_DOUBLE_EQ(target_variation({set, 1, 3}), 8 + 600);
}

TEST(MetricNames, HaveAPersonsOwn) {
  RunRecord own = completed({{"loss", 1}, {"number_correct", 3}, {"epoch_seconds", 2}, {"perplexity", 7}});
  own.metrics = {{"bleu", 0.25}};
  EXPECT_THAT(metric_names({&own}), ElementsAre("epoch_seconds", "loss", "perplexity", "bleu"));
  EXPECT_EQ(run_metric(own, "perplexity"), 7);
  EXPECT_EQ(metric_named("bleu").title, "bleu");
}

TEST(RunMetric, IsTheLatestValueUpToTheEpochThatCounts) {
  RunRecord own = completed({{"loss", 3}, {"val_acc", 0.2}});
  own.metrics = {{"test_accuracy", 0.7}};
  own.epochs.push_back({2, {{"loss", 2}, {"val_acc", 0.3}, {"bleu", 7}}});
  own.epochs.push_back({3, {{"loss", 1}}});
  EXPECT_EQ(run_metric(own, "loss"), 1);
  EXPECT_EQ(run_metric(own, "val_acc"), 0.3);
  EXPECT_EQ(run_metric(own, "f1"), std::nullopt);
  EXPECT_THAT(metric_names({&own}), ElementsAre("loss", "val_acc", "bleu", "test_accuracy"));
  own.best_epoch = 1;
  EXPECT_EQ(run_metric(own, "loss"), 3) << "as the test, which has its weights";
  EXPECT_EQ(run_metric(own, "val_acc"), 0.2);
  EXPECT_EQ(run_metric(own, "test_accuracy"), 0.7);
  EXPECT_EQ(run_metric(own, "bleu"), std::nullopt) << "it came later";
  EXPECT_EQ(result_values(own)->epoch, 1);
  EXPECT_EQ(result_values(RunRecord()), std::nullopt);
}

TEST(MetricText, HasNoSignAtANan) {
  using Row = std::tuple<const char*, std::optional<double>, const char*>;
  for (const auto& [key, value, text] :
       {Row("loss", -std::nan(""), "nan"), Row("accuracy", -std::nan(""), "nan"),
        Row("loss", -INFINITY, "-inf"), Row("accuracy", 0.5, "50.00%"), Row("loss", std::nullopt, ""),
        Row("loss", 0.00123456, "0.0012"), Row("loss", 0.0000123456, "1.235e-05"), Row("loss", 0, "0.0000"),
        Row("loss", 1133, "1133"), Row("loss", -25, "-25"), Row("loss", 12.5, "12.5000")})
    EXPECT_EQ(metric_text(metric_named(key), value), text);
}

TEST(NearestKey, AlsoKnowsTitles) {
  const std::vector<std::string> keys = {"lr", "accuracy", "validation_accuracy", "validation_loss"};
  EXPECT_EQ(nearest_key("val_acc", keys), "validation_accuracy");
  EXPECT_EQ(nearest_key("val_los", keys), "validation_loss");
  EXPECT_EQ(nearest_key("acc", keys), "accuracy");
  EXPECT_EQ(nearest_key("validation_acuracy", keys), "validation_accuracy");
  EXPECT_EQ(nearest_key("something else", keys), "");
}

}  // namespace sweep::judge_test
