#include "runmanager/sweep/sweep_runner.h"

#include "core/data/safetensors.h"
#include "core/json/json_text.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "tests/support/resource_limit.h"
#include "tests/support/run_world.h"

namespace sweep::sweep_runner_test {

class RunSweep : public ::testing::Test, protected World {};

TEST_F(RunSweep, TrainsEveryRunAndLeavesTheFilesOfTheContract) {
  const SweepOutcome outcome = run(small_sweep());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(statuses(outcome), ElementsAre("completed", "completed"));
  EXPECT_EQ(training.batches, 2u * 2 * 4);
  EXPECT_EQ(data_loads, 1u) << "one data set, loaded once";
  for (const char* run : {kFirst, kSecond}) {
    for (const char* file : {"run.json", "checkpoint.safetensors", "log.txt"}) {
      EXPECT_TRUE(fs::exists(path(run) / file)) << run << "/" << file;
    }
    const auto scalars = last_scalars(tbwriter::read_run(path(run)));
    EXPECT_EQ(scalars.at("Loss/train"), 0.5);
    EXPECT_EQ(scalars.at("Accuracy/train"), 0.5);
    EXPECT_EQ(scalars.at("Loss/validation"), 0.25);
    EXPECT_EQ(scalars.at("Number Correct/validation"), 10);
  }
  const auto rows = parse_csv(read_file(path("results.csv")));
  ASSERT_EQ(rows.size(), 5u);  // header, 2 runs of 2 epochs
  EXPECT_THAT(rows[1], Contains("completed"));
  const Json results = read_json_file(path("results.json"));
  EXPECT_EQ(results["sweep"], "small");
  EXPECT_EQ(results["runs"][1]["name"], kSecond);
  EXPECT_EQ(results["runs"][1]["epochs"].size(), 2u);
  const Json record = read_json_file(path(kFirst) / "run.json");
  EXPECT_EQ(record["metrics"]["test_accuracy"], 1.0);
  EXPECT_EQ(record["metrics"]["test_loss"], 0.25);
  EXPECT_EQ(record["device"], "cpu");
  EXPECT_EQ(record["provenance"]["dataset"]["files"][0]["sha256"], std::string(64, 'a'));
  EXPECT_EQ(record["provenance"]["dataset"]["balance"][0]["part"], "train");
  const Json file = read_json_file(path("sweep.json"));
  EXPECT_EQ(file["name"], "small");
  EXPECT_EQ(file["runs"].size(), 2u);
  EXPECT_TRUE(file["provenance"].contains("version"));
}

TEST_F(RunSweep, KeepsWhatARunWasMadeWith) {
  run(small_sweep());
  const Json provenance = read_json_file(path(kFirst) / "run.json")["provenance"];
  for (const char* key : {"version", "revision", "compiler", "numerics", "started", "command", "directory"})
    EXPECT_FALSE(provenance.value(key, Json()).is_null()) << key;
  for (const char* library : {"glibc", "libstdc++", "fmt", "nlohmann_json"})
    EXPECT_NE(provenance["libraries"].value(library, ""), "") << library;
  for (const char* key : {"host", "system", "processor"})
    EXPECT_NE(provenance["machine"].value(key, ""), "") << key;
  const Json cpu = provenance["machine"]["devices"][0];
  EXPECT_EQ(cpu["device"], "cpu");
  EXPECT_THAT(cpu.value("software", ""), StartsWith("Highway 1."));
}

TEST_F(RunSweep, KeepsWeightsUnderPyTorchsNamesAndOptimizerStateBesideThem) {
  run(small_sweep());
  const TensorFile file = read_safetensors(path(kFirst) / "checkpoint.safetensors");
  ASSERT_NE(TensorIndex(file).find("out.weight"), nullptr);
  EXPECT_EQ(TensorIndex(file).find("out.weight")->shape, (Shape{3, 16}));
  EXPECT_EQ(TensorIndex(file).find("out.bias")->shape, (Shape{3}));
  ASSERT_NE(TensorIndex(file).find("optimizer/momentum/out.weight"), nullptr);
  EXPECT_EQ(TensorIndex(file).find("optimizer/momentum/out.weight")->values.at(0), 8);  // 2 epochs of 4 steps
  EXPECT_EQ(file.metadata.at("epoch"), "2");
  EXPECT_EQ(file.metadata.at("step_count"), "8");
  EXPECT_EQ(Json::parse(file.metadata.at("config"))["seed"], 7);
}

TEST_F(RunSweep, EndsWithFailFastAtARunThatFailsForWantOfItsDevice) {
  options.strict = options.fail_fast = true;
  Sweep sweep = small_sweep();
  sweep.runs = {small_run(0, 0.5, "cuda"), small_run(1, 0.5, "cpu")};
  const SweepOutcome outcome = run(sweep);
  EXPECT_THAT(statuses(outcome), ElementsAre("failed", "pending"));
  EXPECT_TRUE(outcome.failed_fast);
  options.retry_failed = false;
  const SweepOutcome again = run(sweep);
  EXPECT_THAT(statuses(again), ElementsAre("failed", "completed"));
  EXPECT_FALSE(again.failed_fast) << "it has failed before";
}

TEST_F(RunSweep, SkipsARunWhoseDeviceIsMissingAndSaysWhyOrFailsItWhenStrict) {
  for (const bool strict : {false, true}) {
    World world;
    world.options.strict = strict;
    Sweep sweep = small_sweep();
    sweep.runs = {small_run(0, 0.5, "cuda"), small_run(1, 0.5, "cpu")};
    const SweepOutcome outcome = world.run(sweep);
    EXPECT_EQ(outcome.exit_code, strict ? 1 : 0);
    EXPECT_THAT(statuses(outcome), ElementsAre(strict ? "failed" : "skipped", "completed"));
    EXPECT_EQ(outcome.runs[0].error, "there is none here");
    EXPECT_EQ(world.training.engines, 1u);
    const fs::path missing = world.path("lr=0.5,device=cuda");
    EXPECT_EQ(read_json_file(missing / "run.json")["status"], strict ? "failed" : "skipped");
    const auto events = tbwriter::read_run(missing);
    EXPECT_EQ(events.empty(), !strict);
    EXPECT_THAT(tbwriter::values_of(events, "_hparams_/session_start_info"), SizeIs(strict ? 1 : 0));
    if (!strict) {
      EXPECT_EQ(outcome.runs[0].device, "cuda");
      EXPECT_THAT(world.out.str(), HasSubstr("there is none here"));
      continue;
    }
    EXPECT_THAT(tbwriter::values_of(events, "status").at(0).tensor().string_val(0),
                HasSubstr("**failed**: there is none here"));
  }
}

TEST_F(RunSweep, GoesOnAfterAFailedRun) {
  training.on_train = [this](const Batch& batch, std::int64_t) -> Totals {
    if (training.engines == 1) throw TrainingError("the first one breaks");
    return {.loss = 1, .correct = 0, .samples = static_cast<std::int64_t>(batch.size())};
  };
  const SweepOutcome outcome = run(small_sweep());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(statuses(outcome), ElementsAre("failed", "completed"));
  EXPECT_EQ(outcome.runs[0].error, "the first one breaks");
  EXPECT_THAT(terminal_output, HasSubstr("[1/2] lr=0.5,device=cpu  failed: the first one breaks"));
}

// Some of which no loss of a batch shows.
TEST_F(RunSweep, EndsADivergedRunWithTheStateOfItsLastGoodEpoch) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInfinity = std::numeric_limits<double>::infinity();
  const auto loss_in_step_6 = [](double bad) {
    return [bad](FakeTraining& fake) {
      fake.on_train = [bad](const Batch& batch, std::int64_t step) -> Totals {
        return {.loss = step == 6 ? bad : 1.0, .samples = static_cast<std::int64_t>(batch.size())};
      };
    };
  };
  const struct {
    std::function<void(FakeTraining&)> diverge;
    const char* error;
    std::size_t good_epochs;
  } cases[] = {
      {loss_in_step_6(kNan), "diverged at epoch 2, batch 3", 1},
      {loss_in_step_6(kInfinity), "diverged at epoch 2, batch 3", 1},
      {[](FakeTraining& fake) { fake.breaks_weights_in_step = 7; },
       "diverged at epoch 2: after its last batch 1 of 51 weights", 1},
      {[](FakeTraining& fake) { fake.evaluation_loss = kInfinity; },
       "diverged at epoch 1: the validation loss is inf", 0},
  };
  for (const auto& [diverge, error, good_epochs] : cases) {
    World world;
    diverge(world.training);
    Sweep sweep = small_sweep(1);
    const SweepOutcome outcome = world.run(sweep);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.runs[0].status, RunStatus::kFailed);
    EXPECT_THAT(outcome.runs[0].error.value(), HasSubstr(error));
    EXPECT_EQ(outcome.runs[0].epochs.size(), good_epochs);
    if (good_epochs == 0) continue;
    const TensorFile file = read_safetensors(world.path(kFirst) / "checkpoint.safetensors");
    EXPECT_EQ(file.metadata.at("epoch"), "1");
    EXPECT_EQ(file.metadata.at("step_count"), "4");
  }
}

TEST_F(RunSweep, FinishesTheBatchWhenAskedToStopAndSaysHowToGoOn) {
  options.command = {"sweep", "my sweep.json", "lr=0.5"};
  training.on_train = [this](const Batch& batch, std::int64_t step) -> Totals {
    if (step == 5) signal = SIGINT;
    return {.loss = 1, .correct = 0, .samples = static_cast<std::int64_t>(batch.size())};
  };
  const SweepOutcome outcome = run(small_sweep());
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(training.batches, 6u);
  EXPECT_THAT(statuses(outcome), ElementsAre("interrupted", "pending"));
  EXPECT_EQ(read_json_file(path(kFirst) / "run.json")["status"], "interrupted");
  EXPECT_EQ(read_json_file(path("results.json"))["runs"][0]["status"], "interrupted");
  EXPECT_THAT(terminal_output, HasSubstr("sweep 'my sweep.json' lr=0.5\n"));
  EXPECT_EQ(read_safetensors(path(kFirst) / "checkpoint.safetensors").metadata.at("epoch"), "1");
}

TEST_F(RunSweep, ExitCodeNamesTheSignal) {
  for (const auto& [asked, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 75}, {SIGUSR2, 75}}) {
    World world;
    world.signal = asked;
    EXPECT_EQ(world.run(small_sweep()).exit_code, code);
    EXPECT_EQ(world.training.batches, 0u);
  }
}

TEST_F(RunSweep, IsDoneIfItsTimeIsUpOnlyAfterTheLastRun) {
  options.max_time = 100;
  SweepEnvironment environment = World::environment();
  environment.clock = [this] {
    const fs::path record = path(kSecond) / "run.json";
    const bool is_over = fs::exists(record) && read_json_file(record)["status"] == "completed";
    return (seconds += tick) + (is_over ? 100 : 0);
  };
  const SweepOutcome outcome = run_sweep(small_sweep(), options, environment);
  EXPECT_THAT(statuses(outcome), ElementsAre("completed", "completed"));
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST_F(RunSweep, ListsEveryTensorThatDoesNotFitBeforeAnythingTrains) {
  const fs::path weights = directory / "weights.safetensors";
  write_safetensors(weights,
                    {.tensors = {{"out.weight", {2, 16}, std::vector<float>(32)}, {"conv9.bias", {1}, {0}}},
                     .metadata = {}});
  Sweep sweep = small_sweep();
  sweep.runs[1].init = weights;
  EXPECT_THAT(test::message_of<DataError>([&] { run(sweep); }),
              AllOf(HasSubstr("weights.safetensors"), HasSubstr("missing: out.bias [3]"),
                    HasSubstr("wrong shape: out.weight is [2, 16], the network's is [3, 16]"),
                    HasSubstr("unexpected: conv9.bias [1]")));
  EXPECT_EQ(training.engines, 0u);
  EXPECT_FALSE(fs::exists(options.logdir)) << "nothing half-written";
}

TEST_F(RunSweep, RefusesADirectoryThatAnotherSweepHolds) {
  const SweepDirectory other = SweepDirectory::open(options.logdir, "small", false);
  EXPECT_THROW(run(small_sweep()), IoError);
  EXPECT_EQ(data_loads, 0u) << "refused before the slow part";
}

TEST_F(RunSweep, RefusesALogDirectoryThatCannotBeMade) {
  tbwriter::spill(directory / "file", "");
  options.logdir = directory.path() / "file" / "logs";
  EXPECT_THROW(run(small_sweep()), IoError);
  EXPECT_EQ(data_loads, 0u);
}

TEST_F(RunSweep, RefusesMoreThanOneJob) {
  options.jobs = 2;
  EXPECT_THROW(run(small_sweep()), ConfigError);
}

// 3 if the sweep ends with an IoError and every file that is there is whole. The kernel refuses to let files
// grow, as on a full disk; call it in a child, since the limit is the process's.
int exit_code_on_a_disk_of(rlim_t bytes) {
  World world;
  const test::ResourceLimit full_disk(RLIMIT_FSIZE, bytes);
  try {
    world.run(small_sweep());
    return 1;
  } catch (const IoError&) {
    for (const auto& entry : fs::recursive_directory_iterator(world.directory.path())) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".tmp")) return 2;
      if (name.ends_with(".json") && !Json::accept(read_file(entry.path()))) return 4;
    }
    return 3;
  }
}

TEST(RunSweepDeathTest, StopsWithAnIoErrorOnAFullDisk) {
  for (const rlim_t bytes : {rlim_t{500}, rlim_t{2000}, rlim_t{4000}, rlim_t{6000}}) {
    EXPECT_EXIT(std::exit(exit_code_on_a_disk_of(bytes)), ::testing::ExitedWithCode(3), "") << bytes;
  }
}

TEST_F(RunSweep, PrintsResultsJsonInsteadOfTheTableWhenAsked) {
  options.json = true;
  run(small_sweep());
  EXPECT_EQ(out.str(), read_file(path("results.json")));
}

TEST_F(RunSweep, EndsWithTheLineThatOpensTensorBoard) {
  run(small_sweep());
  EXPECT_THAT(terminal_output,
              HasSubstr("tensorboard --logdir " + (options.logdir / "small").string() + "\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("tensorboard")));
}

TEST_F(RunSweep, IsSilentWhenQuietExceptForTheTable) {
  options.quiet = true;
  run(small_sweep());
  EXPECT_THAT(terminal_output, IsEmpty());
  EXPECT_THAT(out.str(), HasSubstr("completed"));
}

TEST_F(RunSweep, PassesOverTheSamplesThatItShowsOnceAfterTheLastEpoch) {
  run(small_sweep());
  EXPECT_EQ(training.passes, 2u * (2 * 1 + 2)) << "of each run two of validation, and the test's";
  EXPECT_TRUE(tbwriter::tags_of(tbwriter::read_run(path(kFirst))).contains("predictions/confusion_matrix"))
      << "which the last pass has given the outputs for";
}

TEST_F(RunSweep, ShowsTheSigmoidsOfSeveralOutputsWithBceWithLogits) {
  Sweep sweep = small_sweep();
  sweep.runs[0].loss.kind = LossOptions::Kind::kBceWithLogits;
  run(sweep);
  const auto mistakes = [&](const char* run) {
    return tbwriter::values_of(tbwriter::read_run(path(run)), "predictions/misclassified_list")
        .at(0)
        .tensor()
        .string_val(0);
  };
  // Outputs are 1, 0, 0.
  EXPECT_THAT(mistakes(kFirst), HasSubstr("| a | 73.1 % |"));
  EXPECT_THAT(mistakes(kSecond), HasSubstr("| a | 57.6 % |"));
}

TEST_F(RunSweep, WritesBatchScalarsEverySoManyBatches) {
  Sweep sweep = small_sweep();
  sweep.runs[0].log.batches = 3;
  run(sweep);
  EXPECT_THAT(tbwriter::steps_of(tbwriter::read_run(path(kFirst)), "Loss/batch"), ElementsAre(0, 3, 6));
}

TEST(CostText, HasTheSumOfTheTimesWhereRunsWereTrainedAtOnce) {
  SweepCost cost = {
      .runs = 4, .elapsed_seconds = 5, .seconds = 4.9, .training_seconds = 4.8, .logging_seconds = 0.02};
  EXPECT_THAT(cost_text(cost), HasSubstr("4 runs took 5.00 s; besides training 25 ms per run"));
  cost.seconds = 9.5;
  EXPECT_THAT(cost_text(cost), HasSubstr("4 runs took 5.00 s, the sum of their times is 9.50 s; beside"));
}

}  // namespace sweep::sweep_runner_test
