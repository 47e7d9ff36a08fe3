// What the tasks of a run are given, and how much of a search is left for them.
#include "runmanager/slurm/shapes.h"

#include "tests/support/test.h"

namespace sweep::shapes_test {

TEST(Shapes, HaveTheGpusOfAllStagesAndReplicasUpToTheLastThatIsNamed) {
  const struct {
    const char* device;
    ParallelOptions parallel;
    int devices;
  } cases[] = {{"cuda", {}, 1},
               {"cuda", {4, {}, {}}, 4},
               {"cuda", {2, {}, PipelineOptions{3, {}}}, 6},
               {"cuda", {1, {}, PipelineOptions{0, {"conv2", "fc1"}}}, 3},
               {"cuda", {2, {{"conv*", "cuda:0"}, {"fc*", "cuda:1"}}, {}}, 4},
               {"cuda", {1, {{"conv*", "cuda:2"}, {"fc*", "cuda:1"}}, {}}, 3},
               {"cuda", {2, {{"conv*", "cuda"}, {"fc*", "cuda:2"}}, {}}, 6},
               {"cpu", {4, {}, {}}, 1}};  // Cores are asked for by a key of their own.
  for (const auto& [device, parallel, devices] : cases) {
    RunConfig run;
    run.device = device;
    run.parallel = parallel;
    EXPECT_EQ(shape_of(run, {}).devices, devices);
  }
}

Sweep search_of(SearchMethod method, std::size_t trials, std::size_t at_once = 2) {
  Sweep sweep;
  SearchSpec& search = sweep.search.emplace();
  search.method = method;
  search.trials = trials;
  search.at_once = at_once;
  sweep.runs.resize(method == SearchMethod::kTpe ? at_once : trials);
  for (RunConfig& run : sweep.runs) run.epochs = 9;
  auto source = std::make_shared<TrialSource>();
  source->domain.dimensions.resize(1);
  source->domain.dimensions[0].high = 1;
  sweep.trials = std::move(source);
  return sweep;
}

// With the loss `loss` after each of `epochs` epochs.
RunRecord record(RunStatus status, int epochs, double loss = 1) {
  RunRecord run;
  run.status = status;
  for (int epoch = 1; epoch <= epochs; ++epoch)
    run.epochs.push_back(EpochRecord(epoch, {{"validation_loss", loss}}));
  return run;
}

const RunRecord kCompleted = record(RunStatus::kCompleted, 9), kFailed = record(RunStatus::kFailed, 2);

TEST(OpenTrials, OfTpeAreThoseThatHaveNotEndedOrCanBeChosen) {
  const Sweep sweep = search_of(SearchMethod::kTpe, 4);
  EXPECT_EQ(open_trials(sweep, {}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, record(RunStatus::kRunning, 3)}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, kCompleted, kCompleted}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, kCompleted, kCompleted, kCompleted}, true), 0u);
}

TEST(OpenTrials, CountThoseThatFailedWhereTheyAreTriedAgain) {
  const Sweep sweep = search_of(SearchMethod::kTpe, 4);
  const std::vector records{kCompleted, kFailed, kCompleted, kCompleted};
  EXPECT_EQ(open_trials(sweep, records, true), 1u);
  EXPECT_EQ(open_trials(sweep, records, false), 0u);
}

TEST(OpenTrials, OfAPopulationAreItsMembersAndTheNextCopy) {
  Sweep sweep = search_of(SearchMethod::kPopulation, 3);
  sweep.search->interval = 5;
  const RunRecord paused = record(RunStatus::kInterrupted, 5), pruned = record(RunStatus::kPruned, 5, 2);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, RunRecord{}, RunRecord{}}, true), 2u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, pruned, paused}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, pruned, paused, RunRecord{}}, true), 3u);
  EXPECT_EQ(open_trials(sweep, std::vector{kCompleted, pruned, kCompleted, kCompleted}, true), 0u);
}

TEST(OpenTrials, OfHalvingAreThoseThatItsRungsAskFor) {
  const Sweep sweep = search_of(SearchMethod::kHalving, 3);
  const RunRecord paused = record(RunStatus::kInterrupted, 3, 2);
  EXPECT_EQ(open_trials(sweep, std::vector{RunRecord{}, RunRecord{}, RunRecord{}}, true), 3u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, record(RunStatus::kInterrupted, 3, 1), paused}, true), 1u);
  EXPECT_EQ(open_trials(sweep, std::vector{paused, kCompleted, paused}, true), 0u);
}

}  // namespace sweep::shapes_test
