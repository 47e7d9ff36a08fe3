// The reports of a person's program over the attempts of its run.
#include "runmanager/kinds/command/report_history.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "tests/support/test.h"

namespace sweep::report_history_test {

const Metric& loss() { return metric_named("train_loss"); }
const Metric& accuracy() { return metric_named("train_accuracy"); }

// The letter before a value in a script says of which metric it is; without one it is a loss.
const std::map<char, const Metric*>& lettered() {
  static const std::map<char, const Metric*> metrics = {
      {'a', &accuracy()}, {'f', &metric_named("f1")}, {'t', &metric_named("test_accuracy")}};
  return metrics;
}

// "0.5,a0.9"
std::string values_text(const EpochRecord& epoch) {
  std::string text = epoch[loss()] ? fmt::format("{:g}", *epoch[loss()]) : "";
  for (const auto& [letter, metric] : lettered())
    if (epoch[*metric]) text += fmt::format("{}{}{:g}", text.empty() ? "" : ",", letter, *epoch[*metric]);
  return text;
}

void append_word(std::string& text, const std::string& word) { text += (text.empty() ? "" : " ") + word; }

// A history that notes what it passes on, as "STEP=VALUES#NUMBER …", and where an attempt starts over, as
// "|STEP".
struct History {
  explicit History(std::size_t max_steps = 1000)
      : reports(
            [this](std::int64_t step, const EpochRecord& values) {
              ++closings;
              append_word(closed, fmt::format("{}={}#{}", step, values_text(values), values.epoch));
            },
            max_steps,
            [this](std::int64_t step) {
              append_word(over, std::to_string(step));
              append_word(closed, fmt::format("|{}", step));
              stays = recorded();
            }) {}

  void add(std::optional<std::int64_t> step, double value, std::optional<double> seconds = {}) {
    reports.add({.step = step, .values = {{&loss(), value}}}, seconds);
  }

  // Words: "STEP=VALUES", a report, after "e" one of events, after "r" one of the whole run, with the step
  // "-" one without a step; "|" begins an attempt, "." closes the last step, "*" repeats all.
  void play(std::string_view script) {
    for (std::string_view word : split(script, ' ')) {
      if (word == "|") reports.begin_attempt();
      if (word == ".") reports.close();
      if (word == "*") reports.repeat();
      if (word.find('=') == std::string_view::npos) continue;
      MetricReport report{.step = {}, .values = {}, .of_run = word[0] == 'r', .in_events = word[0] == 'e'};
      if (report.of_run || report.in_events) word.remove_prefix(1);
      report.step = number_in<std::int64_t>(word.substr(0, word.find('=')));
      for (std::string_view value : split(word.substr(word.find('=') + 1), ',')) {
        const auto metric = lettered().find(value[0]);
        if (metric != lettered().end()) value.remove_prefix(1);
        const double number = number_in<double>(value).value();
        report.values.emplace_back(
            metric == lettered().end() ? &loss() : metric->second,
            report.in_events ? static_cast<double>(static_cast<float>(number)) : number);
      }
      reports.add(std::move(report), {});
    }
  }

  // "STEP=VALUES …"
  std::string recorded() const {
    std::string text;
    for (const EpochRecord& epoch : reports.epochs())
      append_word(text, fmt::format("{:g}={}", epoch["step"].value_or(epoch.epoch), values_text(epoch)));
    return text;
  }

  ReportHistory reports;
  std::size_t closings = 0;
  std::string closed, over;  // over: the steps from which attempts start over
  std::string stays;         // what is recorded when the last of them does
};

struct Played {
  const char *script, *recorded, *over = "";
  std::int64_t repeated = 0;     // 0: no step was
  const char* closed = nullptr;  // null: does not matter
};

TEST(ReportHistory, KeepsOverAllAttempts) {
  const char* const numbered = "1=1 2=1 3=1 4=1 5=1 6=1 7=1 8=1 | 3=1 4=1 . *";
  for (const Played& row : std::vector<Played>{
           // What is reported of one step is joined, and closed with the next.
           {"1=0.5 1=0.4,a0.9", "1=0.4,a0.9", "", 0, ""},
           {"1=0.5 1=0.4,a0.9 2=0.3 . .", "1=0.4,a0.9 2=0.3", "", 0, "1=0.4,a0.9#1 2=0.3#2"},
           {"1=1 2=2 3=3 *", "1=1 2=2 3=3", "", 0, "1=1#1 2=2#2 1=1#1 2=2#2"},
           // What comes first counts, whatever its source; the same number in 32 bits is no other one.
           {"1=100 e1=1 2=200 e2=2 3=300 e3=3", "1=100 2=200 3=300", "", 1},
           {"1=1 2=2 3=3 e2=7", "1=1 2=2 3=3", "", 2},
           {"3=0.1 e3=0.1", "3=0.1"},
           {"2000=1 4000=2 2000=3 4000=4", "2000=1 4000=4", "", 2000},
           // An attempt without steps starts over, one with steps from its first one, or it goes on.
           {"-=3 -=2 | -=30", "1=30", "1"},
           {"10=10 20=20 30=30 20=21", "10=10 20=20 30=30", "", 20},
           {"10=10 20=20 30=30 | 20=200 30=300", "10=10 20=200 30=300", "20"},
           {"10=10 20=20 | 30=30 | 30=31", "10=10 20=20 30=31", "30"},
           // A step that each attempt repeats, as Lightning's hp_metric, does not tell where it starts.
           {"| 0=-1 10=10 20=20 | 0=-1 30=30", "0=-1 10=10 20=20 30=30"},
           {"| 0=-1 10=10 20=20 | 0=-1 20=21", "0=-1 10=10 20=21", "20"},
           {"| 0=-1 10=10 20=20 | 0=-1 | 0=-1 10=10", "0=-1 10=10", "0", 0, "0=-1#1 10=10#2 |0 0=-1#1"},
           {"| 0=-1 10=10 20=20 | 0=-2", "0=-2", "0"},
           // What is of the whole run belongs to the last step, and a test without a later one too.
           {"1=1 2=2 | r0=a0.5 3=3", "1=1 2=2,a0.5 3=3"},
           {"1=1 2=2 3=3 1=t0.9", "1=1 2=2 3=3,t0.9"},
           // Training is reported first, and the validation, which takes a while, after it.
           {"10=3 . 10=a0.5 20=2 . 20=2 . 10=f0.25 5=7", "5=7 10=3,a0.5,f0.25 20=2", "", 0,
            "10=3#1 10=a0.5#1 20=2#2 10=f0.25#1 5=7#1"},
           {"| 1=1 2=2 3=3 . | 1=1 2=2 3=3", "1=1 2=2 3=3", "1", 0, "1=1#1 2=2#2 3=3#3 |1 1=1#1 2=2#2"},
           {numbered, "1=1 2=1 3=1 4=1", "3", 0,
            "1=1#1 2=1#2 3=1#3 4=1#4 5=1#5 6=1#6 7=1#7 |3 3=1#3 4=1#4 1=1#1 2=1#2 3=1#3 4=1#4"}}) {
    SCOPED_TRACE(row.script);
    History history;
    history.play(row.script);
    EXPECT_EQ(history.recorded(), row.recorded);
    EXPECT_EQ(history.over, row.over);
    EXPECT_EQ(history.reports.take_repeated().value_or(0), row.repeated);
    EXPECT_EQ(history.reports.take_repeated(), std::nullopt);
    if (row.closed != nullptr) {
      EXPECT_EQ(history.closed, row.closed);
    }
  }
}

TEST(ReportHistory, CountsTheStepsAfterWhichALaterOneHasBegun) {
  History history;
  for (const auto& [word, complete] : {std::pair("1=1", 0U), {".", 0U}, {"1=a1", 0U}, {"2=2", 1U}}) {
    history.play(word);
    EXPECT_EQ(history.reports.complete(), complete) << word;
  }
}

TEST(ReportHistory, ALateValueThatDoesNotCountDoesNotEitherOnceItsStepIsLeftOut) {
  History history(/*max_steps=*/4);
  history.play("1=a1 2=a2 3=3 2=a20 4=4 5=5 6=6 7=7 8=8");
  EXPECT_EQ(history.reports.take_repeated(), 2);
  EXPECT_THAT(history.recorded(), StartsWith("1=a1 3=3,a2 ")) << "step 2 is left out";
}

TEST(ReportHistory, TheTimeOfAStepIsThatWhichItReportsIfItDoes) {
  History history;
  history.add(1, 0.5, 1);
  history.reports.add({.step = 2, .values = {{&metric_named("epoch_seconds"), 0.25}}}, 4);
  history.add(3, 0.5, 6);
  std::vector<double> seconds;
  for (const EpochRecord& epoch : history.reports.epochs()) seconds.push_back(*epoch["epoch_seconds"]);
  EXPECT_THAT(seconds, ElementsAre(1, 0.25, 2));
}

TEST(ReportHistory, CountsTheTimeOfAStepFromTheEndOfThePreviousOne) {
  History history;
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

TEST(ReportHistory, RecordsAThousandStepsAndTheLastOfVeryMany) {
  History history;
  for (int step = 1; step <= 5000; ++step) history.add(step, step);
  history.reports.close();
  EXPECT_EQ(history.closings, 5000u) << "TensorBoard gets all";
  EXPECT_THAT(history.recorded(), AllOf(StartsWith("1=1 "), EndsWith(" 5000=5000")));
  const std::vector<EpochRecord> epochs = history.reports.epochs();
  EXPECT_THAT(epochs, SizeIs(AllOf(Ge(500u), Le(1001u))));
  for (std::size_t i = 2; i + 1 < epochs.size(); ++i)
    EXPECT_EQ(*epochs[i][loss()] - *epochs[i - 1][loss()], *epochs[1][loss()] - 1) << i;
}

// Events that a program flushes late.
TEST(ReportHistory, StaysSmallAlsoIfThousandsOfEarlierStepsComeLate) {
  History history;
  history.add(100000, 1);
  for (int step = 1; step <= 5000; ++step) history.add(step, step);
  EXPECT_THAT(history.reports.epochs(), SizeIs(Le(1001u)));
  EXPECT_THAT(history.recorded(), EndsWith(" 100000=1"));
  EXPECT_EQ(history.closings, 5000u);
}

TEST(ReportHistory, KeepsTheLatestValueOfAMetricWhoseStepIsLeftOut) {
  History history;
  constexpr int kSteps = 4000, kEvery = 90, kLast = kSteps / kEvery * kEvery;
  for (int step = 1; step <= kSteps; ++step) {
    history.add(step, step);
    if (step % kEvery == 0) history.play(fmt::format("{0}=a{0}", step));
  }
  const std::optional<EpochRecord> latest = latest_values(history.reports.epochs());
  EXPECT_EQ((*latest)[accuracy()], kLast);
  const auto has_last = [&](const EpochRecord& epoch) { return epoch[accuracy()] == kLast; };
  std::vector<EpochRecord> epochs = history.reports.epochs();
  const auto at = std::ranges::find_if(epochs, has_last);
  ASSERT_NE(at, epochs.end());
  EXPECT_THAT(*(*at)["step"], AllOf(Ge(kLast), Lt(kLast + 8))) << "where the next step is kept";
  history.play(fmt::format("| {}=1", kLast));
  epochs = history.reports.epochs();
  EXPECT_TRUE(std::ranges::none_of(epochs, has_last));
}

TEST(ReportHistory, KeepsEveryReportThatASearchMayCompare) {
  History some, all(/*max_steps=*/2000);
  for (History* history : {&some, &all})
    for (int step = 1; step <= 1500; ++step) history->add(step, step);
  EXPECT_LT(some.reports.epochs().size(), 1000u);
  ASSERT_EQ(all.reports.epochs().size(), 1500u);
  EXPECT_EQ(all.reports.epochs()[1233][loss()], 1234);
}

// Lightning writes them as scalars, next to others or alone.
TEST(ReportHistory, LeavesOutMetricsThatAreCalledEpochOrStep) {
  History history;
  const Metric &epoch = metric_named("epoch"), &step = metric_named("step");
  history.reports.add({.step = 5, .values = {{&epoch, 0.5}}}, {});
  EXPECT_EQ(history.reports.size(), 0u);
  history.reports.add({.step = 5, .values = {{&step, 7}, {&loss(), 1}, {&epoch, 0.5}}}, {});
  EXPECT_EQ(history.recorded(), "5=1");
  EXPECT_EQ(history.reports.last().values.size(), 2u) << "the loss, and the number of the step";
}

TEST(ReportHistory, KnowsWhatTheProgramsOwnEventsShow) {
  History history;
  history.play("e1=1 1=a0.5");
  EXPECT_EQ(values_text(history.reports.not_in_events(1, history.reports.last())), "a0.5");
}

TEST(ReportHistory, TellsAllThatStaysWhenAnAttemptStartsOver) {
  History history;
  history.play("1=9 e1=a1 e2=a2 e3=a3 | e3=a30");
  const auto steps = history.reports.reported();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(values_text(steps.at(1)), "9,a1");
  EXPECT_EQ(steps.at(2).values.size(), 1u) << "no times";
  EXPECT_EQ(values_text(history.reports.not_in_events(2, steps.at(2))), "a2");
  EXPECT_EQ(values_text(history.reports.not_in_events(3, history.reports.last())), "");
}

TEST(ReportHistory, StartsOverAfterStepsThatAreLeftOut) {
  History history(/*max_steps=*/4);
  history.play("1=1 2=2,a2 3=3 4=4 5=5 6=6 | 3=30");
  EXPECT_EQ(history.stays, "1=1");
  EXPECT_EQ(history.recorded(), "1=1 3=30,a2");
  EXPECT_EQ(values_text(history.reports.reported().at(2)), "a2");
  history.play("| 1=10 2=20 3=30 4=40");
  EXPECT_EQ(history.recorded(), "1=10 2=20 3=30 4=40") << "none has to be left out any more";
}

}  // namespace sweep::report_history_test
