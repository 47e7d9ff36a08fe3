// What a sweep does with the results of an earlier start, and with weights to start from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/data/safetensors.h"
#include "runmanager/sweep/sweep_runner.h"
#include "tests/support/run_world.h"

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kFirst = "lr=0.5,device=cpu";
constexpr const char* kSecond = "lr=0.25,device=cpu";

std::vector<std::string> statuses(const SweepOutcome& outcome) {
  std::vector<std::string> names;
  for (const RunRecord& run : outcome.runs) names.emplace_back(to_string(run.status));
  return names;
}

TEST(RestartedSweep, KeepsFinishedRunsAndTrainsTheOthersAnew) {
  World world;
  world.training.on_train = [&world](const Batch& batch, std::int64_t step) -> Totals {
    if (world.training.engines == 2 && step == 5) world.signal = SIGTERM;
    return {.loss = 1, .correct = 0, .samples = static_cast<std::int64_t>(batch.size())};
  };
  EXPECT_THAT(statuses(world.run(small_sweep())), ElementsAre("completed", "interrupted"));
  const std::string kept = tbwriter::slurp(world.path(kFirst) / "run.json");
  world.signal = 0;
  world.training = {};
  const SweepOutcome outcome = world.run(small_sweep());
  EXPECT_THAT(statuses(outcome), ElementsAre("completed", "completed"));
  EXPECT_EQ(world.training.engines, 1u);
  EXPECT_EQ(tbwriter::slurp(world.path(kFirst) / "run.json"), kept);
  EXPECT_EQ(outcome.runs[0].epochs.size(), 2u);
  // Each step once: the interrupted start's events are gone.
  EXPECT_EQ(tbwriter::values_of(tbwriter::read_run(world.path(kSecond)), "Loss/train").size(), 2u);
  EXPECT_EQ(parse_csv(tbwriter::slurp(world.path("results.csv"))).size(), 5u);
}

TEST(RestartedSweep, GoesOnWithTheKernelsOfTheCheckpointAndStartsAnewIfThereAreOthers) {
  for (const std::string kernels : {"library", "own"}) {
    World world;
    world.training.kernels = "library";
    world.training.on_train = [&world](const Batch& batch, std::int64_t step) -> Totals {
      if (step == 5) world.signal = SIGTERM;
      return {.loss = 1, .correct = 0, .samples = static_cast<std::int64_t>(batch.size())};
    };
    EXPECT_THAT(statuses(world.run(small_sweep())), ElementsAre("interrupted", "pending"));
    world.signal = 0;
    world.training = {};
    world.training.kernels = kernels;
    std::vector<std::string> asked;
    SweepEnvironment environment = world.environment();
    environment.make_engine = [&](const Network& network, const EngineOptions& options) {
      asked.push_back(options.kernels);
      return std::make_unique<FakeEngine>(network, world.training);
    };
    EXPECT_THAT(statuses(run_sweep(small_sweep(), world.options, environment)),
                ElementsAre("completed", "completed"));
    const std::string log = tbwriter::slurp(world.path(kFirst) / "log.txt");
    if (kernels == "library") {
      EXPECT_THAT(asked, ElementsAre("library", "")) << "one engine per run";
      EXPECT_EQ(world.training.batches, 4u + 2 * 4) << "the first epoch was finished";
      EXPECT_THAT(log, HasSubstr("resumed after epoch 0"));
      EXPECT_THAT(log, HasSubstr("kernels: library"));
    } else {
      EXPECT_THAT(asked, ElementsAre("library", "", ""));
      EXPECT_EQ(world.training.batches, 2u * 2 * 4);
      EXPECT_THAT(log,
                  HasSubstr("not resumed but trained from the start: the checkpoint was trained with other "
                            "kernels than there are now, own instead of library"));
    }
  }
}

TEST(RestartedSweep, LoadsNoDataWhenEverythingIsFinished) {
  World world;
  world.run(small_sweep());
  world.data_loads = 0;
  EXPECT_EQ(world.run(small_sweep()).exit_code, 0);
  EXPECT_EQ(world.data_loads, 0u);
}

TEST(RestartedSweep, TrainsARunAnewWhoseIdentityChanged) {
  using Change = std::function<void(RunConfig&)>;
  const std::vector<Change> changes = {
      [](RunConfig& run) { run.resolved["epochs"] = 3; },
      [](RunConfig& run) { run.resolved["seed"] = 8; },
      [](RunConfig& run) { run.resolved["seed"] = 7.0; },  // another type is another value
      [](RunConfig& run) { run.params[0].second = std::int64_t{1}; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    World world;
    Sweep sweep = small_sweep();
    world.run(sweep);
    world.training = {};
    changes[i](sweep.runs[1]);
    world.run(sweep);
    EXPECT_EQ(world.training.engines, 1u) << "change " << i;
    EXPECT_THAT(world.terminal_output, HasSubstr("1 finished run had other settings"));
  }
}

TEST(RestartedSweep, TrainsARunAnewWhoseRecordIsDamaged) {
  World world;
  world.run(small_sweep());
  tbwriter::spill(world.path(kSecond) / "run.json", "{\"name\": ");
  world.training = {};
  EXPECT_EQ(world.run(small_sweep()).exit_code, 0);
  EXPECT_EQ(world.training.engines, 1u);
}

TEST(RestartedSweep, FreshLeavesTheOldDirectoryAlone) {
  World world;
  world.options.fresh = true;
  world.options.command = {"sweep", "small.json", "--fresh"};
  world.run(small_sweep());
  world.signal = SIGINT;
  const SweepOutcome outcome = world.run(small_sweep());
  EXPECT_EQ(outcome.directory.filename(), "small-2");
  EXPECT_EQ(Json::parse(tbwriter::slurp(outcome.directory / "results.json"))["sweep"], "small-2");
  EXPECT_THAT(world.terminal_output, HasSubstr("sweep small.json name=small-2\n"));
}

TEST(RestartedSweep, StartsFromTheWeightsOfAFile) {
  World world;
  world.run(small_sweep());
  const fs::path weights = world.directory / "weights.safetensors";
  fs::copy_file(world.path(kFirst) / "checkpoint.safetensors", weights);  // optimizer state is not in the way
  Sweep sweep = small_sweep();
  for (RunConfig& run : sweep.runs) {
    run.init = weights;
    run.resolved["init"] = weights.string();
  }
  world.run(sweep);
  const TensorFile file = read_safetensors(weights);
  EXPECT_EQ(world.training.first_parameters.at(0), file.find("out.weight")->values.at(0));
  EXPECT_EQ(world.training.first_parameters.at(48), file.find("out.bias")->values.at(0));
}

TEST(RestartedSweep, TrainsAnewWhenTheWeightsItStartsFromChanged) {
  World world;
  world.run(small_sweep());
  const fs::path weights = world.directory / "weights.safetensors";
  fs::copy_file(world.path(kFirst) / "checkpoint.safetensors", weights);
  Sweep sweep = small_sweep();
  sweep.runs.resize(1);
  sweep.runs[0].init = weights;
  sweep.runs[0].resolved["init"] = weights.string();
  world.run(sweep);
  world.training = {};
  world.run(sweep);
  EXPECT_EQ(world.training.engines, 0u);
  fs::copy_file(world.path(kFirst) / "checkpoint.safetensors", weights, fs::copy_options::overwrite_existing);
  world.run(sweep);
  EXPECT_EQ(world.training.engines, 1u);
}

TEST(RestartedSweep, GivesRepeatsOtherWeightsAndTheFirstTheSeedsOwn) {
  World world;
  Sweep sweep = small_sweep();
  sweep.runs.resize(1);
  world.run(sweep);
  const auto first = world.training.first_parameters;
  EXPECT_EQ(first, initial_parameters(Network(small_network(), {1, 4, 4}), 7));
  sweep.runs[0].repeat = 1;
  sweep.runs[0].resolved["repeat"] = 1;
  world.run(sweep);
  EXPECT_NE(world.training.first_parameters, first);
}

}  // namespace
}  // namespace sweep
