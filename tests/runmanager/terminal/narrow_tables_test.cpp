// What tables leave out where there is little room, and what they then do not say.
#include "runmanager/records/judge.h"
#include "runmanager/terminal/results_table.h"
#include "runmanager/terminal/table.h"
#include "tests/support/run_world.h"

namespace sweep::narrow_tables_test {

// A program's run, timed while another one shared the machine.
RunRecord run(const std::string& optimizer, double lr) {
  RunRecord record;
  record.status = RunStatus::kCompleted;
  record.params = {{"optimizer", optimizer}, {"lr", lr}};
  record.jobs = 2;
  record.epochs = {
      {1, {{"top/validation_accuracy", 0.5}, {"train/loss", 0.5}, {"train/acc", 0.5}, {"epoch_seconds", 1}}}};
  return record;
}

const std::vector<std::string> kKeys = {"optimizer", "lr"};

// A program may have many metrics, and that of the goal the longest name.
TEST(NarrowTables, LeaveOutAPersonsMetricsBeforeParametersAndTheGoal) {
  const Goals goals = {asked_goal("top/validation_accuracy", true)};
  EXPECT_THAT(
      results_table({run("x", 0.01), run("y", 0.02)}, kKeys, {.width = 60, .goals = goals}),
      AllOf(HasSubstr("optimizer    lr  top/validation_accuracy  train/acc\n"), HasSubstr(" train/loss\n")));
}

TEST(NarrowTables, ExplainTheMarkOfSharedTimesOnlyIfATimeHasIt) {
  RunRecord failed = run("x", 0.01);
  EXPECT_THAT(results_table({failed}, kKeys), HasSubstr("~ timed while"));
  EXPECT_THAT(results_table({failed}, kKeys, {.width = 30}), Not(HasSubstr("~")));
  failed.epochs.clear();
  EXPECT_THAT(results_table({failed}, kKeys), Not(HasSubstr("~")));
}

TEST(NarrowTables, CutTitlesRatherThanWrapLinesUnlessTheyWouldBeEqual) {
  TextTable table({"lr", "optimizer=adam", "optimizer=adamw", "optimizer=adam / optimizer=adamw"});
  table.rows = {{"0.1", "1.5 s", "12 s", "0.12"}};
  EXPECT_THAT(formatted_table(table, {.width = 60}),
              StartsWith("  lr   optimizer=adam  optimizer=adamw  optimizer=adam / op…\n"));
  EXPECT_THAT(formatted_table(table, {.width = 40}), HasSubstr("  optimizer=adam  optimizer=adamw  "));
}

// Results matter most, so the one parameter that stays has to leave room for them.
TEST(NarrowTables, CutLongValuesFurther) {
  const std::string same(40, 'x');
  const std::string table = results_table({run("a" + same, 0.1), run("b" + same, 0.1)}, {"optimizer"},
                                          {.width = 40, .goals = {asked_goal("train/acc", true)}});
  EXPECT_THAT(table,
              AllOf(HasSubstr("  train/acc\n"), HasSubstr("\n  b" + same.substr(22) + "…     0.5000")));
}

TEST(NarrowTables, CutTextsAtTheEndThatDoesNotTellThemApart) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(shortened({"abcdef", "ab", "abcdef"}, 4, true), (Texts{"abc…", "ab", "abc…"}));
  EXPECT_EQ(shortened({"nets/a", "nets/b"}, 4, false), (Texts{"~s/a", "~s/b"}));
  EXPECT_EQ(shortened({"ax1234a", "ay1234a"}, 2, true), (Texts{"ax1…", "ay1…"})) << "twice as many columns";
  EXPECT_EQ(shortened({"名前a", "名前b"}, 4, true), (Texts{"…前a", "…前b"}));
}

}  // namespace sweep::narrow_tables_test
