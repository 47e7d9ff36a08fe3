#include "runmanager/sweep/in_process_executor.h"

#include "tests/support/test.h"

namespace sweep::in_process_executor_test {

// Returns what deliver() throws, or "".
std::string problem_after(RunFailure failure, bool is_lost) {
  const auto fails = [failure](const WorkerTask&, const ReportEvent&, const TrainerOptions&) {
    return TrainedRun{.record = {}, .failure = failure};
  };
  InProcessExecutor executor(fails, {}, [&](const Device&) { return is_lost; });
  RunConfig config;
  config.name = "lr-1";
  ScheduledRun run;
  run.config = &config;
  run.needs.device = {DeviceType::kCuda, 1};
  executor.start(0, run, {}, 1);
  int ends = 0;
  const auto deliver = [&] {
    executor.deliver(0, [&](const RunEvent& event) { ends += std::holds_alternative<TrainedRun>(event); });
  };
  std::string problem;
  try {
    deliver();
  } catch (const DeviceError& error) {
    problem = error.what();
  }
  EXPECT_EQ(ends, 1) << "the run is recorded";
  return problem;
}

TEST(InProcessExecutor, EndsTheSweepIfItsProcessHasLostTheDevice) {
  EXPECT_THAT(problem_after(RunFailure::kDevice, true),
              StartsWith("cuda:1 failed in run \"lr-1\", and this process cannot use it any more"));
  EXPECT_EQ(problem_after(RunFailure::kDevice, false), "") << "such as out of memory";
  EXPECT_EQ(problem_after(RunFailure::kError, true), "");
}

}  // namespace sweep::in_process_executor_test
