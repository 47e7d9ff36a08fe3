#include "runmanager/terminal/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "runmanager/terminal/best_run.h"
#include "runmanager/terminal/terminal.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RunRecord run(const std::string& name, RunStatus status, double accuracy,
              std::optional<double> validation = {}) {
  RunRecord record;
  record.name = name;
  record.status = status;
  record.params = {{"optimizer", name}, {"lr", 0.01}};
  if (accuracy >= 0) {
    record.epochs = {{.epoch = 1,
                      .loss = 1 - accuracy,
                      .accuracy = accuracy,
                      .number_correct = 1,
                      .validation_accuracy = validation,
                      .epoch_seconds = 1,
                      .run_seconds = 2,
                      .images_per_second = 3e4}};
    record.run_seconds = 2;
  } else {
    record.error = "no device\nsecond line";
  }
  return record;
}

TEST(BestRun, IsTheCompletedOneWithTheHighestValidationAccuracy) {
  EXPECT_EQ(best_run({run("a", RunStatus::kCompleted, 0.9, 0.5), run("b", RunStatus::kCompleted, 0.6, 0.6),
                      run("c", RunStatus::kInterrupted, 0.99, 0.99), run("d", RunStatus::kSkipped, -1)}),
            1u);
}

TEST(BestRun, FallsBackOnTheTrainingAccuracyAndIgnoresNan) {
  EXPECT_EQ(best_run({run("a", RunStatus::kCompleted, 0.5), run("b", RunStatus::kCompleted, 0.75),
                      run("c", RunStatus::kCompleted, 0.75)}),
            1u);
  EXPECT_EQ(best_run({run("a", RunStatus::kCompleted, 0.5, std::nan("")),
                      run("b", RunStatus::kCompleted, 0.1, 0.2)}),
            1u);
  EXPECT_EQ(best_run({run("a", RunStatus::kFailed, 0.5)}), std::nullopt);
  EXPECT_EQ(best_run({}), std::nullopt);
}

// A run whose targets are numbers.
RunRecord numbers_run(const std::string& name, double loss, double rmse) {
  RunRecord record = run(name, RunStatus::kCompleted, 0.5);
  EpochRecord& epoch = record.epochs[0];
  epoch.accuracy = std::nullopt;
  epoch.number_correct = std::nullopt;
  epoch.loss = loss;
  epoch.validation_measures = {std::nullopt, 1, rmse, 0.25};
  record.metrics = {{"test_r2", 0.125}};
  return record;
}

TEST(BestRun, OfNumbersHasTheLowestErrorWhateverItsLoss) {
  EXPECT_EQ(best_run({numbers_run("mse", 9, 3), numbers_run("l1", 2, 2.5), numbers_run("huber", 1, 4)}), 1u);
}

TEST(ResultsTable, ShowsMeasuresInPlaceOfTheAccuracy) {
  const std::string table = results_table({numbers_run("mse", 9, 3)}, {"optimizer"});
  for (const char* text :
       {"val MAE", "1.0000", "val RMSE", "3.0000", "val R2", "0.2500", "test R2", "0.1250"})
    EXPECT_THAT(table, HasSubstr(text));
  for (const char* text : {"accuracy", "val acc", "top-5", "test RMSE"})
    EXPECT_THAT(table, Not(HasSubstr(text)));
  RunRecord many = run("many", RunStatus::kCompleted, 0.5);
  many.epochs[0].validation_measures[0] = 0.75;
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
}

TEST(ResultsTable, TimeAndSpeedAreOfTheSameEpochs) {
  RunRecord record = run("a", RunStatus::kCompleted, 0.5);
  record.epochs.push_back(record.epochs[0]);
  record.epochs[0].epoch_seconds = 3;
  record.epochs[0].images_per_second = 100;
  record.epochs[1].images_per_second = 300;
  const std::string table = results_table({record}, {"optimizer"});
  EXPECT_THAT(table, HasSubstr(" 2.00 s "));
  EXPECT_THAT(table, HasSubstr(" 150 ")) << "300 images in either epoch, 600 in 4 s";
}

TEST(ResultsTable, LeavesOutParametersBeforeMetricsAndSaysWhich) {
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
  EXPECT_THAT(wide, Not(HasSubstr("left out")));
  EXPECT_THAT(narrow, HasSubstr("left out for want of room: constant, total, epochs, img/s,\n    network\n"));
  for (const char* kept : {"  lr  ", "val acc", "accuracy", "loss"}) EXPECT_THAT(narrow, HasSubstr(kept));
  EXPECT_THAT(results_table(runs, keys, {.width = 30}), HasSubstr("\n  0.2  completed"));
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
    EXPECT_THAT(narrow, HasSubstr("70.00% ± 20.00"));
  }
  runs.resize(1);
  EXPECT_THAT(results_table(runs, {"lr", "repeat"}), Not(HasSubstr("±")));
}

TEST(ResultsTable, FitsTheTerminal) {
  for (int width = 40; width < 140; width += 9) {
    const std::string table =
        results_table({run("a", RunStatus::kCompleted, 0.5), run("b", RunStatus::kSkipped, -1)},
                      {"optimizer", "lr"}, {.width = width});
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
  EXPECT_THAT(table, Not(HasSubstr("left out"))) << "what is asked for is shown, however wide";
  try {
    results_table(runs, {"optimizer", "lr"}, {.columns = {"lr", "val_accuracy"}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("there is no column \"val_accuracy\", want optimizer, lr, status, epochs, loss"));
  }
}

}  // namespace
}  // namespace sweep
