#include "runmanager/terminal/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

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
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[2], StartsWith("★ "));
  EXPECT_THAT(lines[2], HasSubstr("50.00%"));
  EXPECT_THAT(lines[3], HasSubstr("skipped    no device …"));
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
  EXPECT_EQ(lines_of(table).size(), 4u);
}

}  // namespace
}  // namespace sweep
