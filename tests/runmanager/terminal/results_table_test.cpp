#include "runmanager/terminal/results_table.h"

#include "runmanager/records/judge.h"
#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "tests/support/run_world.h"

namespace sweep::results_table_test {

RunRecord run(const std::string& name, RunStatus status, double accuracy,
              std::optional<double> validation = {}) {
  RunRecord record;
  record.name = name;
  record.status = status;
  record.params = {{"optimizer", name}, {"lr", 0.01}};
  if (accuracy >= 0) {
    record.epochs = {{1,
                      {{"loss", 1 - accuracy},
                       {"accuracy", accuracy},
                       {"number_correct", 1},
                       {"validation_accuracy", validation},
                       {"epoch_seconds", 1},
                       {"run_seconds", 2},
                       {"images_per_second", 3e4}}}};
    record.run_seconds = 2;
  } else {
    record.error = "no device\nsecond line";
  }
  return record;
}

// A run whose targets are numbers.
RunRecord numbers_run(const std::string& name, double loss, double rmse) {
  RunRecord record = run(name, RunStatus::kCompleted, 0.5);
  EpochRecord& epoch = record.epochs[0];
  epoch.set("accuracy", std::nullopt);
  epoch.set("number_correct", std::nullopt);
  epoch.set("loss", loss);
  epoch.set("validation_mae", 1);
  epoch.set("validation_rmse", rmse);
  epoch.set("validation_r2", 0.25);
  record.metrics = {{"test_r2", 0.125}};
  return record;
}

TEST(ResultsTable, ShowsMeasuresInPlaceOfTheAccuracy) {
  const std::string table = results_table({numbers_run("mse", 9, 3)}, {"optimizer"});
  for (const char* text :
       {"val MAE", "1.0000", "val RMSE", "3.0000", "val R2", "0.2500", "test R2", "0.1250"})
    EXPECT_THAT(table, HasSubstr(text));
  for (const char* text : {"accuracy", "val acc", "top-5", "test RMSE"})
    EXPECT_THAT(table, Not(HasSubstr(text)));
  RunRecord many = run("many", RunStatus::kCompleted, 0.5);
  many.epochs[0].set("validation_top5_accuracy", 0.75);
  EXPECT_THAT(results_table({many}, {"optimizer"}), HasSubstr("val top-5"));
  EXPECT_THAT(results_table({many}, {"optimizer"}), HasSubstr("75.00%"));
}

TEST(ResultsTable, AlignsColumnsWhateverTheCharacters) {
  const std::string table =
      results_table({run("adam", RunStatus::kCompleted, 0.5), run("日本", RunStatus::kCompleted, 0.75),
                     run("é", RunStatus::kCompleted, 0.25)},
                    {"optimizer", "lr"});
  int column = -1;
  for (const std::string& line : lines_of(table)) {
    if (line.find("completed") == std::string::npos) continue;
    const int here = display_width(line.substr(0, line.find("completed")));
    if (column < 0) column = here;
    EXPECT_EQ(here, column) << line;
  }
  EXPECT_GT(column, 0);
}

TEST(ResultsTable, MarksTheBestRunAndShowsReasonsInOneLine) {
  const auto lines = lines_of(results_table(
      {run("a", RunStatus::kCompleted, 0.5), run("b", RunStatus::kSkipped, -1)}, {"optimizer", "lr"}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[2], StartsWith("★ "));
  EXPECT_THAT(lines[2], HasSubstr("50.00%"));
  EXPECT_EQ(lines[3], "  1 run skipped: no device …");
  EXPECT_EQ(lines[4], "  ★ highest training accuracy");
}

TEST(ResultsTable, HasALinePerReasonOfSkippedRunsOrOnePerRunIfWanted) {
  std::vector<RunRecord> runs = {run("a", RunStatus::kCompleted, 0.5), run("b", RunStatus::kSkipped, -1),
                                 run("c", RunStatus::kSkipped, -1), run("d", RunStatus::kSkipped, -1)};
  runs[3].error = "another reason";
  const std::string table = results_table(runs, {"optimizer"});
  EXPECT_THAT(table, HasSubstr("  2 runs skipped: no device …\n"));
  EXPECT_THAT(table, HasSubstr("  1 run skipped: another reason\n"));
  EXPECT_THAT(results_table(runs, {"optimizer"}, {.skipped = true}), HasSubstr("skipped    another reason"));
  EXPECT_THAT(results_table(runs, {"optimizer"}, {.unicode = false}), HasSubstr("skipped: no device ~\n"));
}

TEST(ResultsTable, ShowsFewDigitsOfALossThatHasDiverged) {
  const std::string table = results_table({numbers_run("mse", 3.8563993178e28, 3)}, {"optimizer"});
  EXPECT_THAT(table, HasSubstr("  3.856e+28  "));
}

// Three runs of a search for the lowest loss, the first with the highest accuracy.
std::vector<RunRecord> searched_runs() {
  std::vector<RunRecord> runs;
  for (const auto& [name, accuracy, loss] : {std::tuple("a", 0.9, 0.5), {"b", 0.8, 0.25}, {"c", 0.7, 0.75}}) {
    runs.push_back(run(name, RunStatus::kCompleted, accuracy, accuracy));
    runs.back().name = std::string("optimizer=") + name;
    runs.back().epochs[0].set("validation_loss", loss);
  }
  return runs;
}

TEST(ResultsTable, MarksTheBestRunOfASearchByItsGoalAndNamesIt) {
  const Goals goals = {asked_goal("validation_loss", false)};
  const auto lines = lines_of(results_table(searched_runs(), {"optimizer"}, {.goals = goals}));
  EXPECT_THAT(lines[2], StartsWith("  a"));
  EXPECT_THAT(lines[3], StartsWith("★ b"));
  EXPECT_EQ(lines.back(), "  ★ lowest validation loss: 0.2500, optimizer=b");
}

TEST(ResultsTable, MarksTheFrontOfSeveralGoals) {
  const Goals goals = {asked_goal("validation_accuracy", true), asked_goal("validation_loss", false)};
  const auto lines = lines_of(results_table(searched_runs(), {"optimizer"}, {.goals = goals}));
  EXPECT_THAT(lines[2], StartsWith("★ a"));
  EXPECT_THAT(lines[3], StartsWith("◆ b"));
  EXPECT_THAT(lines[4], StartsWith("  c"));
  EXPECT_EQ(lines[5], "  ★ highest validation accuracy, the first of 2 goals: 90.00%, optimizer=a");
  EXPECT_EQ(lines[6], "  ◆ not beaten in validation accuracy and validation loss: 2 runs");
  const auto plain =
      lines_of(results_table(searched_runs(), {"optimizer"}, {.unicode = false, .goals = goals}));
  EXPECT_THAT(plain[3], StartsWith("+ b"));
}

TEST(ResultsTable, CallsNoRunTheBestThatIsNotTheBestOfAll) {
  const std::string table = results_table(searched_runs(), {"optimizer"}, {.top = 1});
  EXPECT_THAT(table, HasSubstr("★ a"));
  std::vector<RunRecord> turned = searched_runs();
  std::swap(turned[0], turned[2]);
  const auto lines = lines_of(results_table(turned, {"optimizer"}, {.top = 2}));
  EXPECT_THAT(lines[2], StartsWith("  c"));
  EXPECT_THAT(lines[3], StartsWith("  b"));
  EXPECT_EQ(lines[4], "  ★ highest validation accuracy: 90.00%, optimizer=a");
}

TEST(ResultsTable, MarksTheRunThatIsSaidToBeTheBestOfEqualOnes) {
  const std::vector<RunRecord> runs = {run("a", RunStatus::kCompleted, 0.5),
                                       run("b", RunStatus::kCompleted, 0.5)};
  EXPECT_THAT(results_table(runs, {"optimizer"}), HasSubstr("★ a"));
  EXPECT_THAT(results_table(runs, {"optimizer"}, {.best = "b"}), HasSubstr("★ b"));
}

TEST(ResultsTable, CutsLongValuesButNotWhereTheyDiffer) {
  const std::string same(40, 'x');
  const std::vector<RunRecord> one = {run(same, RunStatus::kCompleted, 0.5)},
                               two = {run(same + "1", RunStatus::kCompleted, 0.5),
                                      run(same + "2", RunStatus::kCompleted, 0.5)};
  EXPECT_THAT(results_table(one, {"optimizer"}), HasSubstr("★ " + same.substr(0, 31) + "…"));
  EXPECT_THAT(results_table(one, {"optimizer"}, {.unicode = false}), Not(HasSubstr("…")));
  const std::string ends = "…" + same.substr(0, 30);
  EXPECT_THAT(results_table(two, {"optimizer"}), AllOf(HasSubstr(ends + "1"), HasSubstr(ends + "2")));
}

TEST(ResultsTable, ShowsAPersonsOwnMetrics) {
  RunRecord record = run("a", RunStatus::kCompleted, 0.5);
  record.metrics["bleu"] = 0.375;
  const auto lines = lines_of(results_table({record}, {"optimizer"}));
  EXPECT_THAT(lines[0], HasSubstr("  bleu  "));
  EXPECT_THAT(lines[2], HasSubstr("0.3750"));
  EXPECT_THAT(results_table({record}, {"optimizer"}, {.columns = {"bleu"}}), HasSubstr("0.3750"));
}

TEST(FormattedResults, HavePlainNumbersInCsvAndTextElsewhere) {
  const std::vector<RunRecord> runs = {run("a|b", RunStatus::kCompleted, 0.5)};
  EXPECT_THAT(formatted_results(runs, {"optimizer"}, TableFormat::kCsv),
              StartsWith("optimizer,run,status,epochs,loss,accuracy,epoch_seconds,images_per_second,"
                         "run_seconds\na|b,a|b,completed,1,0.5,0.5,1,30000,2\n"));
  EXPECT_THAT(formatted_results(runs, {"optimizer"}, TableFormat::kMarkdown),
              AllOf(HasSubstr("| accuracy |"), HasSubstr("| a&#124;b |"), HasSubstr("| 50.00% |")));
  EXPECT_THAT(formatted_results(runs, {"optimizer"}, TableFormat::kLatex), HasSubstr("50.00\\%"));
}

TEST(FormattedResults, CallAParameterApartFromAColumnWithItsName) {
  std::vector<RunRecord> runs = {run("a", RunStatus::kCompleted, 0.5)};
  for (const char* key : {"loss", "epochs", "run"}) runs[0].params.emplace_back(key, "of parameter");
  const std::vector<std::string> keys = {"loss", "epochs", "run"};
  EXPECT_THAT(formatted_results(runs, keys, TableFormat::kCsv),
              StartsWith("param.loss,param.epochs,param.run,run,status,epochs,loss,accuracy,"));
  EXPECT_THAT(results_table(runs, keys, {.columns = {"loss", "param.loss"}}),
              AllOf(StartsWith("    loss  param.loss\n"), HasSubstr("0.5000  of parameter\n")));
}

TEST(ResultsTable, LeavesOutTimesBeforeParametersBeforeMetricsAndSaysWhich) {
  std::vector<RunRecord> runs;
  for (const char* name : {"a", "b"}) {
    RunRecord record = run("x", RunStatus::kCompleted, 0.5, 0.25);
    record.params = {{"constant", true},
                     {"network", std::string("a-very-long-value-") + name},
                     {"lr", name == std::string("a") ? 0.1 : 0.2}};
    runs.push_back(record);
  }
  const std::vector<std::string> keys = {"constant", "network", "lr"};
  const std::string wide = results_table(runs, keys, {.width = 130}),
                    narrow = results_table(runs, keys, {.width = 60});
  EXPECT_THAT(wide, Not(HasSubstr("not shown")));
  EXPECT_THAT(narrow,
              HasSubstr("  not shown for lack of width: status, constant, total,\n    epochs, s/epoch\n"));
  for (const char* kept : {"  lr  ", "value-a", "value-b", "val acc", "accuracy", "loss"})
    EXPECT_THAT(narrow, HasSubstr(kept));
  EXPECT_THAT(results_table(runs, keys, {.width = 45}),
              HasSubstr("constant, total, epochs, img/s, network\n"));
  EXPECT_THAT(results_table(runs, keys, {.width = 30}), HasSubstr("\n  0.2    50.00%   25.00%\n"));
  runs[1].status = RunStatus::kInterrupted;
  EXPECT_THAT(results_table(runs, keys, {.width = 30}), HasSubstr("\n  0.2  interrupted"));
}

// That of a device, say, of which one is skipped, tells apart no rows that are there.
TEST(ResultsTable, KeepsAParameterThatTellsItsRowsApart) {
  std::vector<RunRecord> runs;
  for (const double lr : {0.012345678, 0.023456789}) {
    runs.push_back(run("x", RunStatus::kCompleted, 0.5));
    runs.back().params = {{"lr", lr}, {"dev", "cpu"}};
    runs.push_back(run("x", RunStatus::kSkipped, -1));
    runs.back().params = {{"lr", lr}, {"dev", "cuda"}};
  }
  const std::string table = results_table(runs, {"lr", "dev"}, {.width = 28});
  EXPECT_THAT(table, AllOf(HasSubstr("0.012345678"), HasSubstr("0.023456789"), HasSubstr(" dev")));
  EXPECT_THAT(results_table(runs, {"lr", "dev"}, {.width = 28, .skipped = true}), HasSubstr("cuda"));
  const std::string numbers =
      results_table({numbers_run("mse", 9, 3), numbers_run("mse", 8, 2), numbers_run("l1", 7, 1)},
                    {"optimizer"}, {.width = 26});
  EXPECT_THAT(numbers, StartsWith("  optimizer")) << "a metric is no parameter";
}

TEST(ResultsTable, EndsWithMeansOverRepeats) {
  std::vector<RunRecord> runs;
  for (const double accuracy : {0.5, 0.7, 0.9}) {
    RunRecord record = run("x", RunStatus::kCompleted, accuracy);
    record.params = {{"lr", 0.1}, {"repeat", static_cast<std::int64_t>(runs.size())}};
    runs.push_back(record);
  }
  const std::string table = results_table(runs, {"lr", "repeat"});
  EXPECT_THAT(table, HasSubstr("Mean ± standard deviation over repeats"));
  EXPECT_THAT(table, HasSubstr("70.00% ± 20.00"));
  EXPECT_THAT(table, HasSubstr("0.3000 ± 0.2000"));
  for (const int width : {60, 80}) {
    const std::string narrow = results_table(runs, {"lr", "repeat"}, {.width = width});
    for (const std::string& line : lines_of(narrow)) EXPECT_LE(display_width(line), width) << line;
    const std::string means = narrow.substr(narrow.find("Mean ±"));
    EXPECT_THAT(means, HasSubstr("70.00% ± 20.00"));
    EXPECT_EQ(means.find("\n  not shown for lack of width: ") != std::string::npos, width == 60) << means;
  }
  EXPECT_THAT(results_table(runs, {"lr", "repeat"}, {.top = 1}), HasSubstr("70.00% ± 20.00")) << "of all";
  runs.resize(1);
  EXPECT_THAT(results_table(runs, {"lr", "repeat"}), Not(HasSubstr("±")));
}

TEST(ResultsTable, FitsTheTerminal) {
  RunRecord failed = run("c", RunStatus::kFailed, 0.25);
  failed.error = "the loss is no longer finite";
  for (int width = 40; width < 140; ++width) {
    const std::string table =
        results_table({run("a", RunStatus::kCompleted, 0.5), run("b", RunStatus::kSkipped, -1), failed},
                      {"optimizer", "lr"}, {.width = width});
    EXPECT_THAT(table, HasSubstr("25.00%")) << "what it measured is not cut for its reason";
    for (const std::string& line : lines_of(table)) EXPECT_LE(display_width(line), width) << line;
    EXPECT_THAT(table, HasSubstr("completed"));
  }
}

TEST(ResultsTable, IsPlainTextUnlessColoursAreWanted) {
  const std::vector<RunRecord> runs = {run("a", RunStatus::kCompleted, 0.5),
                                       run("b", RunStatus::kFailed, -1)};
  EXPECT_THAT(results_table(runs, {"lr"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(results_table(runs, {"lr"}, {.color = true}), HasSubstr("\x1b[31m"));
  const std::string ascii = results_table({run("a", RunStatus::kCompleted, 0.5)}, {"lr"}, {.unicode = false});
  EXPECT_TRUE(
      std::all_of(ascii.begin(), ascii.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST(ResultsTable, CountsRunsThatWereNotStartedInsteadOfListingThem) {
  const std::string table =
      results_table({run("a", RunStatus::kCompleted, 0.5), run("b", RunStatus::kPending, -1),
                     run("c", RunStatus::kPending, -1)},
                    {"optimizer"});
  EXPECT_THAT(table, HasSubstr("2 runs not started"));
  EXPECT_EQ(lines_of(table).size(), 5u);
}

TEST(ResultsTable, HasTheColumnsThatAreAskedForInTheirOrder) {
  const std::vector<RunRecord> runs = {run("a", RunStatus::kCompleted, 0.5, 0.25),
                                       run("b", RunStatus::kSkipped, -1)};
  const std::string table =
      results_table(runs, {"optimizer", "lr"},
                    {.width = 20, .columns = {"validation_accuracy", "optimizer", "images_per_second"}});
  EXPECT_THAT(table, StartsWith("  val acc  optimizer  img/s\n"));
  EXPECT_THAT(table, HasSubstr("  25.00%  a          30.0k\n"));
  EXPECT_THAT(table, Not(HasSubstr("not shown"))) << "what is asked for is shown, however wide";
  EXPECT_THAT(message_of<ConfigError>([&] {
                results_table(runs, {"optimizer", "lr"}, {.columns = {"lr", "val_acc"}});
              }),
              AllOf(HasSubstr("there is no column \"val_acc\", want optimizer, lr, status, epochs, loss"),
                    HasSubstr("did you mean \"validation_accuracy\"?")));
}

TextTable times() {
  TextTable table({"lr", "cpu"});
  table.rows = {{"0.01", "1.5 s"}, {"0.001", "12 s"}};
  return table;
}

std::vector<std::string> titles_of(const TextTable& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

TEST(TextTable, CutsTitlesAfterTheFirstToFit) {
  TextTable table({"label", "class 1", "class 2"});
  table.rows = {{"class 1", "957", "2"}};
  EXPECT_TRUE(table.fit_titles(27, true));
  EXPECT_THAT(titles_of(table), ElementsAre("label", "class 1", "class 2")) << "it takes 27 columns";
  EXPECT_TRUE(table.fit_titles(22, true));
  EXPECT_THAT(titles_of(table), ElementsAre("label", "cla…", "cla…"));
  EXPECT_FALSE(table.fit_titles(18, true));
  EXPECT_TRUE(table.fit_titles(0, true)) << "any width";
}

TEST(TextTable, ACellStaysOnItsLine) {
  TextTable table({"file", "class"}, 2);
  table.rows = {{"a\nb", "cat"}};
  EXPECT_EQ(formatted_table(table, {.unicode = false}),
            "  file  class\n"
            "  ----  -----\n"
            "  a\\nb  cat\n");
}

TEST(TextTable, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(formatted_table(TextTable({"\x1b[2J"}), {.unicode = false}).find('\x1b'), std::string::npos);
}

TEST(TextTable, FitsByLeavingOutTheLeastImportantAndOfThoseTheWidestColumns) {
  TextTable table;
  table.columns = {{.title = "needed"},
                   {.title = "wide column", .importance = 10},
                   {.title = "thin", .importance = 10},
                   {.title = "more", .importance = 20}};
  table.rows = {{"1", "2", "3", "4"}};
  const std::string whole = formatted_table(table, {TableFormat::kText, false, 0});
  EXPECT_THAT(whole, EndsWith("       1            2     3     4\n"));
  EXPECT_EQ(formatted_table(table, {TableFormat::kText, false, 100}), whole);
  EXPECT_THAT(formatted_table(table, {TableFormat::kText, false, 30}),
              EndsWith("       1     3     4\n  not shown for lack of width:\n    wide column\n"));
  EXPECT_THAT(table.fit(20), ElementsAre("wide column"));
  EXPECT_THAT(titles_of(table), ElementsAre("needed", "thin", "more"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "3", "4")));
  EXPECT_THAT(table.fit(1), ElementsAre("thin", "more")) << "what is needed stays";
}

TEST(TextTable, KeepsWhatFitsAfterAllOnceAWiderColumnIsGone) {
  TextTable table;
  table.columns = {{.title = "needed"},
                   {.title = "a", .importance = 10},
                   {.title = "a very wide column", .importance = 20}};
  EXPECT_THAT(table.fit(12), ElementsAre("a very wide column"));
}

TEST(TextTable, DropsColumnsWithoutAnyCell) {
  TextTable table({"a", "b", "c"});
  table.rows = {{"1", "", "2"}, {"3"}};
  table.drop_empty_columns();
  EXPECT_THAT(titles_of(table), ElementsAre("a", "c"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "2"), ElementsAre("3")));
}

TEST(TextTable, PrintsItselfInEveryFormat) {
  TextTable table = times();
  table.columns[1].key = "seconds,cpu";
  EXPECT_EQ(formatted_table(table, {TableFormat::kText}),
            "  lr       cpu\n  ─────  ─────\n  0.01   1.5 s\n  0.001   12 s\n");
  EXPECT_EQ(formatted_table(table, {TableFormat::kCsv}), "lr,\"seconds,cpu\"\n0.01,1.5 s\n0.001,12 s\n");
  EXPECT_EQ(formatted_table(table, {TableFormat::kMarkdown}),
            "| lr | cpu |\n| --- | --- |\n| 0.01 | 1.5 s |\n| 0.001 | 12 s |\n");
  EXPECT_EQ(formatted_table(table, {TableFormat::kLatex}),
            "\\begin{tabular}{lr}\n  \\toprule\n  lr & cpu \\\\\n  \\midrule\n"
            "  0.01 & 1.5 s \\\\\n  0.001 & 12 s \\\\\n  \\bottomrule\n\\end{tabular}\n");
}

TEST(TextTable, LatexShowsItsOwnCharactersAsTheyAre) {
  EXPECT_EQ(latex_text("a_b & 50% ~ {x} \\y ^2 #1 $"),
            "a\\_b \\& 50\\% \\textasciitilde{} \\{x\\} \\textbackslash{}y \\textasciicircum{}2 \\#1 \\$");
  EXPECT_EQ(latex_text("[1,2] *"), "{[}1,2] {*}") << "not the options of \\\\ in front";
  EXPECT_EQ(latex_text("<a|b>"), "\\textless{}a\\textbar{}b\\textgreater{}");
  EXPECT_EQ(latex_text("a\n\nb"), "a\\textbackslash{}n\\textbackslash{}nb");
}

}  // namespace sweep::results_table_test
