// The reports of a person's program over the attempts of its run.
#include "runmanager/kinds/command/report_history.h"

#include <fmt/format.h>

#include "tests/support/test.h"

namespace sweep::report_history_test {

const Metric& loss() { return metric_named("train_loss"); }
const Metric& accuracy() { return metric_named("train_accuracy"); }

// A history that notes which steps were completed, and with which loss.
struct History {
  std::vector<std::pair<std::int64_t, double>> closed;
  ReportHistory reports{[this](std::int64_t step, const EpochRecord& values) {
    closed.emplace_back(step, values[loss()].value_or(-1));
  }};

  bool add(std::optional<std::int64_t> step, double value, std::optional<double> seconds = {}) {
    return reports.add({.step = step, .values = {{&loss(), value}}}, seconds).has_value();
  }
  // The losses that are recorded, by their steps.
  std::vector<std::pair<int, double>> recorded() const {
    std::vector<std::pair<int, double>> found;
    for (const EpochRecord& epoch : reports.epochs())
      found.emplace_back(static_cast<int>(epoch["step"].value_or(epoch.epoch)), *epoch[loss()]);
    return found;
  }
};

struct ReportHistoryTest : ::testing::Test {
  History history;
};
using ReportHistory = ReportHistoryTest;

TEST_F(ReportHistory, JoinsWhatIsReportedOfOneStepAndClosesItWithTheNext) {
  history.add(1, 0.5);
  history.reports.add({.step = 1, .values = {{&accuracy(), 0.9}, {&loss(), 0.4}}}, {});
  EXPECT_THAT(history.closed, IsEmpty());
  EXPECT_EQ(history.reports.complete(), 0u);
  history.add(2, 0.3);
  EXPECT_THAT(history.closed, ElementsAre(std::pair(1, 0.4)));
  EXPECT_EQ(history.reports.complete(), 1u);
  EXPECT_EQ(history.reports.epochs().at(0)[accuracy()], 0.9);
  history.reports.close();
  history.reports.close();
  EXPECT_THAT(history.closed, ElementsAre(std::pair(1, 0.4), std::pair(2, 0.3)));
}

TEST_F(ReportHistory, WhatComesFirstCountsWhateverItsSource) {
  for (const double first : {100.0, 200.0, 300.0}) {
    const auto step = static_cast<std::int64_t>(first / 100);
    history.add(step, first);
    history.reports.add({.step = step, .values = {{&loss(), first / 100}}, .in_events = true}, {});
  }
  EXPECT_THAT(history.recorded(), ElementsAre(std::pair(1, 100.0), std::pair(2, 200.0), std::pair(3, 300.0)));
  EXPECT_EQ(history.reports.take_repeated(), 1);
  history.reports.add({.step = 2, .values = {{&loss(), 7}}, .in_events = true}, {});
  EXPECT_EQ(history.reports.take_repeated(), 2);
  history.add(3, 0.1);
  history.reports.add({.step = 3, .values = {{&loss(), static_cast<double>(0.1F)}}, .in_events = true}, {});
  EXPECT_EQ(history.reports.take_repeated(), std::nullopt) << "the same number in 32 bits";
}

TEST_F(ReportHistory, TheTimeOfAStepIsThatWhichItReportsIfItDoes) {
  history.add(1, 0.5, 1);
  history.reports.add({.step = 2, .values = {{&metric_named("epoch_seconds"), 0.25}}}, 4);
  history.add(3, 0.5, 6);
  std::vector<double> seconds;
  for (const EpochRecord& epoch : history.reports.epochs()) seconds.push_back(*epoch["epoch_seconds"]);
  EXPECT_THAT(seconds, ElementsAre(1, 0.25, 2));
}

TEST_F(ReportHistory, CountsReportsWithoutAStepInEachAttempt) {
  for (const double value : {3, 2}) history.add({}, value);
  history.reports.begin_attempt();
  EXPECT_TRUE(history.add({}, 30)) << "an attempt without steps starts over";
  EXPECT_THAT(history.recorded(), ElementsAre(std::pair(1, 30.0)));
}

TEST_F(ReportHistory, OnlyTheFirstReportOfAnAttemptReplaces) {
  for (const int step : {10, 20, 30}) history.add(step, step);
  EXPECT_FALSE(history.add(20, 21)) << "a late value of the same attempt";
  history.reports.begin_attempt();
  EXPECT_TRUE(history.add(20, 200));
  EXPECT_FALSE(history.add(30, 300));
  EXPECT_THAT(history.recorded(),
              ElementsAre(std::pair(10, 10.0), std::pair(20, 200.0), std::pair(30, 300.0)));
  history.reports.begin_attempt();
  EXPECT_FALSE(history.add(40, 400)) << "it goes on where the last one ended";
  EXPECT_EQ(history.recorded().size(), 4u);
  history.reports.begin_attempt();
  EXPECT_TRUE(history.add(40, 401)) << "it repeats the last step";
  EXPECT_THAT(history.recorded().back(), std::pair(40, 401.0));
}

TEST_F(ReportHistory, AStepThatEachAttemptRepeatsDoesNotTellWhereItStarts) {
  const auto begin = [this] {
    history.reports.begin_attempt();
    return history.add(0, -1);  // as Lightning's hp_metric
  };
  begin();
  for (const int step : {10, 20, 30}) history.add(step, step);
  EXPECT_FALSE(begin());
  EXPECT_FALSE(history.add(40, 40)) << "it goes on";
  EXPECT_FALSE(begin());
  EXPECT_TRUE(history.add(30, 31)) << "from a checkpoint before the last step";
  EXPECT_THAT(history.recorded(),
              ElementsAre(std::pair(0, -1.0), std::pair(10, 10.0), std::pair(20, 20.0), std::pair(30, 31.0)));
  EXPECT_FALSE(begin()) << "and ends there";
  EXPECT_FALSE(begin());
  EXPECT_TRUE(history.add(10, 10)) << "from the beginning, with the same numbers";
  EXPECT_THAT(history.recorded(), ElementsAre(std::pair(0, -1.0), std::pair(10, 10.0)));
  history.add(20, 20);
  history.reports.begin_attempt();
  EXPECT_TRUE(history.add(0, -2)) << "with other numbers";
}

TEST_F(ReportHistory, WhatIsOfTheWholeRunBelongsToTheLastStep) {
  for (const int step : {1, 2}) history.add(step, step);
  history.reports.begin_attempt();
  history.reports.add({.step = 0, .values = {{&accuracy(), 0.5}}, .of_run = true}, {});
  EXPECT_FALSE(history.add(3, 3));
  EXPECT_THAT(history.recorded(), ElementsAre(std::pair(1, 1.0), std::pair(2, 2.0), std::pair(3, 3.0)));
  EXPECT_EQ(history.reports.epochs().at(1)[accuracy()], 0.5);
}

TEST_F(ReportHistory, CountsTheTimeOfAStepFromTheEndOfThePreviousOne) {
  history.add(1, 0, 2);
  history.add(1, 1, 2.5);
  history.add(2, 0, 5);
  const auto epochs = history.reports.epochs();
  EXPECT_EQ(epochs.at(0)["run_seconds"], 2);
  EXPECT_EQ(epochs.at(1)["run_seconds"], 5);
  EXPECT_EQ(epochs.at(1)["epoch_seconds"], 3);

  History later;
  later.reports.know_times(epochs);
  for (const int step : {1, 2}) later.add(step, 0);
  later.add(3, 0, 6);
  EXPECT_EQ(later.reports.epochs().at(1)["run_seconds"], 5) << "as an earlier start has recorded";
  EXPECT_EQ(later.reports.epochs().at(2)["epoch_seconds"], 1);
}

TEST_F(ReportHistory, RecordsAThousandStepsAndTheLastOfVeryMany) {
  constexpr int kSteps = 5000;
  for (int step = 1; step <= kSteps; ++step) history.add(step, step);
  history.reports.close();
  EXPECT_EQ(history.closed.size(), static_cast<std::size_t>(kSteps)) << "TensorBoard gets all";
  const auto recorded = history.recorded();
  EXPECT_LE(recorded.size(), 1001u);
  EXPECT_GE(recorded.size(), 500u);
  EXPECT_EQ(recorded.front().first, 1);
  EXPECT_EQ(recorded.back(), std::pair(kSteps, double{kSteps}));
  const int stride = recorded[1].first - recorded[0].first;
  for (std::size_t i = 2; i + 1 < recorded.size(); ++i)
    EXPECT_EQ(recorded[i].first - recorded[i - 1].first, stride) << "after step " << recorded[i - 1].first;
}

// Events that a program flushes late.
TEST_F(ReportHistory, StaysSmallAlsoIfThousandsOfEarlierStepsComeLate) {
  history.add(100000, 1);
  for (int step = 1; step <= 5000; ++step) history.add(step, step);
  EXPECT_LE(history.recorded().size(), 1001u);
  EXPECT_EQ(history.recorded().back(), std::pair(100000, 1.0));
  EXPECT_EQ(history.closed.size(), 5000u);
}

TEST_F(ReportHistory, KeepsTheLatestValueOfAMetricWhoseStepIsLeftOut) {
  constexpr int kSteps = 4000, kEvery = 90;
  for (int step = 1; step <= kSteps; ++step) {
    history.add(step, step);
    if (step % kEvery == 0) history.reports.add({.step = step, .values = {{&accuracy(), step}}}, {});
  }
  constexpr int kLast = kSteps / kEvery * kEvery;
  int step = 0;
  double value = 0;
  for (const EpochRecord& epoch : history.reports.epochs()) {
    if (!epoch[accuracy()]) continue;
    step = static_cast<int>(*epoch["step"]);
    value = *epoch[accuracy()];
  }
  EXPECT_EQ(value, kLast);
  EXPECT_GE(step, kLast);
  EXPECT_LT(step, kLast + 8) << "where the next step is kept";
  history.reports.begin_attempt();
  history.add(kLast, 1);
  for (const EpochRecord& epoch : history.reports.epochs()) EXPECT_NE(epoch[accuracy()], kLast);
}

TEST_F(ReportHistory, ALateValueThatDoesNotCountDoesNotEitherOnceItsStepIsLeftOut) {
  sweep::ReportHistory reports([](std::int64_t, const EpochRecord&) {}, /*max_steps=*/4);
  const auto add = [&](std::int64_t step, double value) {
    reports.add({.step = step, .values = {{&accuracy(), value}}}, {});
  };
  add(1, 1);
  add(2, 2);
  for (int step = 3; step < 9; ++step) {
    reports.add({.step = step, .values = {{&loss(), step}}}, {});
    if (step == 3) add(2, 20);
  }
  EXPECT_EQ(reports.take_repeated(), 2);
  EXPECT_EQ(reports.epochs().at(1)["step"], 3) << "step 2 is left out";
  EXPECT_EQ(reports.epochs().at(1)[accuracy()], 2);
}

// Lightning writes them as scalars, next to others or alone.
TEST_F(ReportHistory, LeavesOutMetricsThatAreCalledEpochOrStep) {
  const Metric &epoch = metric_named("epoch"), &step = metric_named("step");
  history.reports.add({.step = 5, .values = {{&epoch, 0.5}}}, {});
  EXPECT_EQ(history.reports.size(), 0u);
  history.reports.add({.step = 5, .values = {{&step, 7}, {&loss(), 1}, {&epoch, 0.5}}}, {});
  EXPECT_THAT(history.recorded(), ElementsAre(std::pair(5, 1.0)));
  EXPECT_EQ(history.reports.last().values.size(), 2u) << "the loss, and the number of the step";
}

TEST_F(ReportHistory, KnowsWhatTheProgramsOwnEventsShow) {
  history.reports.add({.step = 1, .values = {{&loss(), 1}}, .in_events = true}, {});
  history.reports.add({.step = 1, .values = {{&accuracy(), 0.5}}}, {});
  const EpochRecord rest = history.reports.not_in_events(1, history.reports.last());
  EXPECT_FALSE(rest[loss()]);
  EXPECT_EQ(rest[accuracy()], 0.5);
}

TEST_F(ReportHistory, TellsWhatIsLostWithTheEventsOfAnAttemptThatStartsOver) {
  history.add(1, 9);
  for (const int step : {1, 2, 3})
    history.reports.add({.step = step, .values = {{&accuracy(), step}}, .in_events = true}, {});
  EXPECT_THAT(history.reports.take_orphans(), IsEmpty());
  history.reports.begin_attempt();
  history.reports.add({.step = 3, .values = {{&accuracy(), 30}}, .in_events = true}, {});
  const auto orphans = history.reports.take_orphans();
  ASSERT_EQ(orphans.size(), 2u);
  EXPECT_EQ(orphans[1].first, 2);
  EXPECT_EQ(orphans[0].second[accuracy()], 1);
  EXPECT_EQ(orphans[0].second[loss()], std::nullopt) << "it was in no events";
  EXPECT_TRUE(history.reports.not_in_events(2, orphans[1].second)[accuracy()]);
  EXPECT_FALSE(history.reports.not_in_events(3, history.reports.last())[accuracy()]);
}

// Training is reported first, and the validation, which takes a while, after it.
TEST_F(ReportHistory, PassesOnWhatComesAfterAStepWasClosed) {
  std::vector<std::string> passed;
  sweep::ReportHistory reports([&](std::int64_t step, const EpochRecord& values) {
    std::string text = fmt::format("{} ({}):", step, values.epoch);
    for (const auto& [metric, value] : values.values) text += fmt::format(" {}={:g}", metric->key, value);
    passed.push_back(text);
  });
  const auto add = [&](std::int64_t step, const Metric& metric, double value) {
    reports.add({.step = step, .values = {{&metric, value}}}, {});
  };
  add(10, loss(), 3);
  reports.close();
  EXPECT_EQ(reports.complete(), 0u) << "more may come";
  add(10, accuracy(), 0.5);
  add(20, loss(), 2);
  EXPECT_EQ(reports.complete(), 1u);
  reports.close();
  add(20, loss(), 2);
  reports.close();
  add(10, metric_named("f1"), 0.25);
  add(5, loss(), 7);
  EXPECT_THAT(passed, ElementsAre("10 (1): train_loss=3", "10 (1): train_accuracy=0.5",
                                  "20 (2): train_loss=2", "10 (1): f1=0.25", "5 (1): train_loss=7"));
  EXPECT_EQ(reports.epochs().at(1)["f1"], 0.25);
}

TEST_F(ReportHistory, KeepsEveryReportThatASearchMayCompare) {
  const auto keep = [](sweep::ReportHistory reports) {
    for (int step = 1; step <= 1500; ++step)
      reports.add({.step = step, .values = {{&loss(), static_cast<double>(step)}}}, {});
    return reports.epochs();
  };
  const auto ignore = [](std::int64_t, const EpochRecord&) {};
  EXPECT_LT(keep(sweep::ReportHistory(ignore)).size(), 1000u);
  const std::vector<EpochRecord> all = keep(sweep::ReportHistory(ignore, 2000));
  ASSERT_EQ(all.size(), 1500u);
  EXPECT_EQ(all[1233][loss()], 1234);
}

TEST_F(ReportHistory, NumbersStepsAnewAfterAnAttemptHasStartedOver) {
  std::vector<int> numbers;
  sweep::ReportHistory reports(
      [&](std::int64_t, const EpochRecord& values) { numbers.push_back(values.epoch); });
  const auto add = [&](std::int64_t step) { reports.add({.step = step, .values = {{&loss(), 1}}}, {}); };
  for (int step = 1; step <= 8; ++step) add(step);
  reports.begin_attempt();
  for (int step = 3; step <= 4; ++step) add(step);
  reports.close();
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6, 7, 3, 4));
  numbers.clear();
  reports.repeat();
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4));
}

TEST_F(ReportHistory, KeepsTheFirstValueOfAnEarlierStepAndTellsThatItCameAgain) {
  double value = 0;
  for (const int step : {2000, 4000, 2000, 4000}) history.add(step, ++value);
  EXPECT_THAT(history.recorded(), ElementsAre(std::pair(2000, 1.0), std::pair(4000, 4.0)))
      << "the last one may change";
  EXPECT_EQ(history.reports.take_repeated(), 2000);
  EXPECT_EQ(history.reports.take_repeated(), std::nullopt);
}

TEST_F(ReportHistory, PutsATestWithoutALaterStepAtTheLastOne) {
  for (const int step : {1, 2, 3}) history.add(step, step);
  history.reports.add({.step = 1, .values = {{&metric_named("test_accuracy"), 0.9}}}, {});
  EXPECT_EQ(history.reports.epochs().at(2)["test_accuracy"], 0.9);
}

TEST_F(ReportHistory, RepeatsTheStepsThatAreComplete) {
  for (const int step : {1, 2, 3}) history.add(step, step);
  history.closed.clear();
  history.reports.repeat();
  EXPECT_THAT(history.closed, ElementsAre(std::pair(1, 1.0), std::pair(2, 2.0)));
}

}  // namespace sweep::report_history_test
