#include "runmanager/terminal/json_progress.h"

#include "tests/support/test.h"

namespace sweep::json_progress_test {

using Json = nlohmann::json;

struct Written {
  std::vector<Json> events;
  std::function<void(std::string_view)> function() {
    return [this](std::string_view line) {
      EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
      events.push_back(Json::parse(line));
    };
  }
};

RunRecord ended(RunStatus status) {
  RunRecord run;
  run.name = "a\n\"b\"";
  run.status = status;
  if (status == RunStatus::kFailed) run.error = "broken";
  run.run_seconds = 1.5;
  run.metrics = {{"test_accuracy", 0.5}};
  return run;
}

void train(Progress& progress, RunStatus status) {
  const RunPlan plan{.name = "a\n\"b\"", .epochs = 3, .batches = 10, .samples = 100, .trained_epochs = 1};
  const EpochRecord epoch{2, {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"accuracy", 0.25}}};
  for (const RunEvent& event :
       std::vector<RunEvent>{plan, TrainedBatches{2, 1, {.loss = 1, .correct = 1, .samples = 10}},
                             RunPhase{"validation"}, epoch})
    progress.report(2, event);
  progress.end_run(2, ended(status));
}

TEST(JsonProgress, IsAnObjectPerEvent) {
  Written written;
  JsonProgress progress(
      written.function(), [] { return 0.0; }, false, "s", 4, 100);
  progress.keep_runs(0);
  progress.keep_runs(1);
  progress.message("two\nlines");
  train(progress, RunStatus::kCompleted);
  ASSERT_EQ(written.events.size(), 5u);
  EXPECT_EQ(written.events[0], Json::parse(R"({"event": "kept", "runs": 1})"));
  EXPECT_EQ(written.events[1], Json::parse(R"({"event": "message", "text": "two\nlines"})"));
  EXPECT_EQ(written.events[2],
            Json::parse(R"({"event": "begin", "run": "a\n\"b\"", "number": 2, "runs": 4, "epochs": 3,
      "trained_epochs": 1, "batches": 10, "samples": 100})"));
  EXPECT_EQ(written.events[3].at("run"), "a\n\"b\"");
  EXPECT_EQ(written.events[3].at("epoch"), 2);
  EXPECT_EQ(written.events[3].at("loss"), "NaN");
  EXPECT_EQ(written.events[3].at("accuracy"), 0.25);
  EXPECT_EQ(written.events[4].at("status"), "completed");
  EXPECT_EQ(written.events[4].at("metrics").at("test_accuracy"), 0.5);
  EXPECT_EQ(written.events[4].at("run_seconds"), 1.5);
  EXPECT_FALSE(written.events[4].contains("error"));
}

TEST(JsonProgress, SaysOnlyFailuresAndMessagesIfQuiet) {
  Written written;
  JsonProgress progress(
      written.function(), [] { return 0.0; }, true, "s", 4, 100);
  progress.keep_runs(1);
  train(progress, RunStatus::kCompleted);
  train(progress, RunStatus::kFailed);
  progress.message("m");
  ASSERT_EQ(written.events.size(), 2u);
  EXPECT_EQ(written.events[0].at("error"), "broken");
  EXPECT_EQ(written.events[1].at("text"), "m");
}

}  // namespace sweep::json_progress_test
