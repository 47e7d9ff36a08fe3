// The reports of a person's program over the attempts of its run.
#include "runmanager/kinds/command/report_history.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "tests/support/test.h"

namespace sweep::report_history_test {

const Metric& loss() { return metric_named("train_loss"); }

// The letter before a value in a script says of which metric it is; without one it is a loss.
const std::map<char, const Metric*>& lettered() {
  static const std::map<char, const Metric*> metrics = {
      {'a', &metric_named("train_accuracy")}, {'f', &metric_named("f1")},
      {'p', &metric_named("epoch")},          {'q', &metric_named("step")},
      {'s', &metric_named("epoch_seconds")},  {'t', &metric_named("test_accuracy")}};
  return metrics;
}

// "0.5,a0.9"; no times.
std::string values_text(const EpochRecord& epoch) {
  std::string text = epoch[loss()] ? fmt::format("{:g}", *epoch[loss()]) : "";
  for (const char letter : {'a', 'f', 't'})
    if (const auto value = epoch[*lettered().at(letter)])
      text += fmt::format("{}{}{:g}", text.empty() ? "" : ",", letter, *value);
  return text;
}

void append_word(std::string& text, const std::string& word) { text += (text.empty() ? "" : " ") + word; }

std::string steps_text(const std::map<std::int64_t, EpochRecord>& steps) {
  std::string text;
  for (const auto& [step, values] : steps) append_word(text, fmt::format("{}={}", step, values_text(values)));
  return text;
}

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
              stays = fmt::format("{} of {}", recorded(), steps_text(reports.reported()));
            }) {}

  void add(std::optional<std::int64_t> step, double value) {
    reports.add({.step = step, .values = {{&loss(), value}}});
  }

  // Words: "STEP=VALUES", a report, after "e" one of events, after "r" one of the whole run, with the step
  // "-" one without a step, with "@SECONDS" one at that time of the run; "|" begins an attempt, "." closes
  // the last step, "*" repeats all.
  void play(std::string_view script) {
    for (std::string_view word : split(script, ' ')) {
      if (word == "|") reports.begin_attempt();
      if (word == ".") reports.close();
      if (word == "*") reports.repeat();
      if (word.find('=') == std::string_view::npos) continue;
      MetricReport report{.step = {}, .values = {}, .of_run = word[0] == 'r', .in_events = word[0] == 'e'};
      if (report.of_run || report.in_events) word.remove_prefix(1);
      const std::vector<std::string_view> parts = split(word, '@');
      if (parts.size() > 1) report.seconds = number_in<double>(parts[1]);
      word = parts[0];
      report.step = number_in<std::int64_t>(word.substr(0, word.find('=')));
      for (std::string_view value : split(word.substr(word.find('=') + 1), ',')) {
        const auto metric = lettered().find(value[0]);
        if (metric != lettered().end()) value.remove_prefix(1);
        const double number = number_in<double>(value).value();
        report.values.emplace_back(
            metric == lettered().end() ? &loss() : metric->second,
            report.in_events ? static_cast<double>(static_cast<float>(number)) : number);
      }
      reports.add(std::move(report));
    }
  }

  // "STEP=VALUES …"
  std::string recorded() const {
    std::map<std::int64_t, EpochRecord> steps;
    for (const EpochRecord& epoch : reports.epochs()) steps[step_of(epoch)] = epoch;
    return steps_text(steps);
  }
  std::vector<std::optional<double>> recorded(const char* key) const {
    std::vector<std::optional<double>> values;
    for (const EpochRecord& epoch : reports.epochs()) values.push_back(epoch[key]);
    return values;
  }

  ReportHistory reports;
  std::size_t closings = 0;
  std::string closed, over;  // over: the steps from which attempts start over
  std::string stays;         // what is recorded, of what was reported, when the last of them does
};

struct Played {
  const char *script, *recorded, *over = "";
  std::int64_t repeated = 0;     // 0: no step was
  const char* closed = nullptr;  // null: does not matter
  std::size_t max_steps = 1000;
  const char* stays = nullptr;  // likewise
};

TEST(ReportHistory, KeepsOverAllAttempts) {
  const char* const numbered = "1=1 2=1 3=1 4=1 5=1 6=1 7=1 8=1 | 3=1 4=1 . *";
  for (const Played& row : std::vector<Played>{
           // What is reported of one step is joined, and closed with the next.
           {"1=0.5 1=0.4,a0.9", "1=0.4,a0.9", "", 0, ""},
           {"1=0.5 1=0.4,a0.9 2=0.3 . .", "1=0.4,a0.9 2=0.3", "", 0, "1=0.4,a0.9#1 2=0.3#2"},
           {"1=1 2=2 . *", "1=1 2=2", "", 0, "1=1#1 2=2#2 1=1#1 2=2#2"},
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
            "1=1#1 2=1#2 3=1#3 4=1#4 5=1#5 6=1#6 7=1#7 |3 3=1#3 4=1#4 1=1#1 2=1#2 3=1#3 4=1#4"},
           // Lightning writes "epoch" and "step" as scalars, next to others or alone.
           {"5=p0.5", ""},
           {"5=q7,1,p0.5", "5=1"},
           // Step 2 is left out: a late value that does not count does not then either.
           {"1=a1 2=a2 3=3 2=a20 4=4 5=5 6=6 7=7 8=8", "1=a1 3=3,a2 5=5 7=7 8=8", "", 2, nullptr, 4},
           {"1=1,a1 2=2,a2 3=3 4=4 | 3=30", "1=1,a1 3=30,a2", "3", 0, nullptr, 2, "1=1,a1 of 1=1,a1 2=a2"},
           // A rare metric keeps its steps, also those that it has later.
           {"1=1 2=2,a2 3=3 4=4 5=5 6=6 4=a4 7=7 8=8 | 3=30", "1=1 2=2,a2 3=30", "3", 0, nullptr, 4,
            "1=1 2=2,a2 of 1=1 2=2,a2"},
           {"1=1 2=2,a2 3=3 4=4 5=5 6=6 4=a4 7=7 8=8", "1=1 2=2,a2 3=3 4=a4 8=8", "", 0, nullptr, 4},
           {"1=1 2=2,a2 3=3 4=4 5=5 6=6 | 3=30 | 1=10 2=20 3=30 4=40", "1=10 2=20 3=30 4=40", "3 1", 0,
            nullptr, 4, " of "},
           {"1=9 e1=a1 e2=a2 e3=a3 | e3=a30", "1=9,a1 2=a2 3=a30", "3", 0, nullptr, 1000,
            "1=9,a1 2=a2 of 1=9,a1 2=a2"}}) {
    SCOPED_TRACE(row.script);
    History history(row.max_steps);
    history.play(row.script);
    EXPECT_EQ(history.recorded(), row.recorded);
    EXPECT_EQ(history.reports.complete(), std::max<std::size_t>(history.reports.epochs().size(), 1) - 1);
    EXPECT_EQ(history.over, row.over);
    EXPECT_EQ(history.reports.take_repeated().value_or(0), row.repeated);
    EXPECT_EQ(history.reports.take_repeated(), std::nullopt);
    if (row.closed != nullptr) {
      EXPECT_EQ(history.closed, row.closed);
    }
    if (row.stays != nullptr) {
      EXPECT_EQ(history.stays, row.stays);
    }
  }
}

TEST(ReportHistory, CountsTheTimeOfAStepFromTheEndOfThePreviousOneUnlessItIsReported) {
  History history;
  history.play("1=0@2 1=1@2.5 2=0@5 3=s0.25@8 4=0@10");
  EXPECT_THAT(history.recorded("run_seconds"), ElementsAre(2, 5, 8, 10));
  EXPECT_THAT(history.recorded("epoch_seconds"), ElementsAre(2, 3, 0.25, 2));
  EXPECT_EQ(history.reports.reported().at(2).values.size(), 1U) << "no times";

  History later;
  later.reports.know_times(history.reports.epochs());
  later.play("1=0 2=0 3=1@6");
  EXPECT_THAT(later.recorded("run_seconds"), ElementsAre(2, 5, 6)) << "as an earlier start has recorded";
  EXPECT_THAT(later.recorded("epoch_seconds"), ElementsAre(2, 3, 1));
}

TEST(ReportHistory, RecordsAThousandStepsAndTheLastOfVeryMany) {
  for (const bool is_late : {false, true}) {  // late: as events that a program flushes after others
    History history;
    history.add(is_late ? 100000 : 0, 1);
    for (int step = 1; step <= 5000; ++step) history.add(step, step);
    history.reports.close();
    EXPECT_EQ(history.closings, 5001u) << "TensorBoard gets all";
    EXPECT_THAT(history.recorded(), EndsWith(is_late ? " 100000=1" : " 5000=5000"));
    const std::vector<EpochRecord> epochs = history.reports.epochs();
    EXPECT_THAT(epochs, SizeIs(AllOf(Ge(500u), Le(1001u))));
    for (std::size_t i = 2; !is_late && i + 1 < epochs.size(); ++i)
      EXPECT_EQ(step_of(epochs[i]) - step_of(epochs[i - 1]), step_of(epochs[1]) - step_of(epochs[0])) << i;
  }
}

TEST(ReportHistory, KeepsRareMetricsAndTheLatestValueOfThoseWhoseStepIsLeftOut) {
  for (const int every : {2, 90}) {
    History history;
    constexpr int kSteps = 4000;
    const int last = (kSteps - 1) / every * every;
    for (int step = 1; step < kSteps; ++step) {
      history.add(step, step);
      if (step % every == 0) history.play(fmt::format("{0}=a{0}", step));
    }
    std::vector<EpochRecord> epochs = history.reports.epochs();
    EXPECT_THAT(epochs, SizeIs(AllOf(Ge(500u), Le(1001u))));
    const auto measured = std::ranges::count_if(
        epochs, [](const EpochRecord& epoch) { return epoch["train_accuracy"].has_value(); });
    EXPECT_THAT(measured, AllOf(Ge(std::min(250, last / every)), Le(last / every)));
    EXPECT_EQ((*latest_values(epochs))["train_accuracy"], last);
    history.play(fmt::format("| {}=1", last));
    epochs = history.reports.epochs();
    EXPECT_TRUE(std::ranges::none_of(
        epochs, [last](const EpochRecord& epoch) { return epoch["train_accuracy"] >= last; }));
  }
}

// A loop that counts batches for its loss and epochs for its validation.
TEST(ReportHistory, KeepsTheStepsOfAMetricThatCountsInItsOwnWay) {
  History history;
  for (int step = 1; step <= 6000; ++step) {
    history.add(step, step);
    if (step % 100 == 0) history.play(fmt::format("{}=a{}", step / 100, step));
  }
  const std::vector<EpochRecord> epochs = history.reports.epochs();
  for (int epoch = 1; epoch <= 60; ++epoch)
    EXPECT_TRUE(std::ranges::any_of(epochs, [epoch](const EpochRecord& values) {
      return step_of(values) == epoch && values["train_accuracy"] == 100 * epoch;
    })) << epoch;
  EXPECT_THAT(epochs, SizeIs(Le(1001u)));
}

TEST(ReportHistory, KeepsEveryReportThatASearchMayCompare) {
  for (const std::size_t most : {1000, 2000}) {
    History history(most);
    for (int step = 1; step <= 1500; ++step) history.add(step, step);
    EXPECT_EQ(history.reports.epochs().size() == 1500, most == 2000);
    EXPECT_EQ(history.reports.epochs()[most / 2][loss()] == most / 2 + 1, most == 2000);
  }
}

TEST(ReportHistory, KnowsWhatTheProgramsOwnEventsShow) {
  History history;
  const auto not_in_events = [&history](std::int64_t step) {
    return values_text(history.reports.not_in_events(step, history.reports.reported().at(step)));
  };
  history.play("e1=1 1=a0.5");
  EXPECT_EQ(not_in_events(1), "a0.5");
  history.play("e2=a2 e3=a3 | e3=a30");
  EXPECT_EQ(not_in_events(2), "a2") << "those of the earlier attempt are put away";
  EXPECT_EQ(not_in_events(3), "");
}

}  // namespace sweep::report_history_test
