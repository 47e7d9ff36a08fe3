// What a sweep does with the results of an earlier start, and with weights to start from.

#include <csignal>

#include "core/base/error.h"
#include "core/data/safetensors.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/training/resume_point.h"
#include "runmanager/training/run_recorder.h"
#include "tbwriter/event_files.h"
#include "tests/support/run_world.h"
#include "tests/support/tensor_bytes.h"

namespace sweep::restarted_sweep_test {

class RestartedSweep : public ::testing::Test, protected World {};

class FinishedSweep : public RestartedSweep {
 protected:
  FinishedSweep() { run(small_sweep()); }

  // The sweep whose first `runs` runs are trained again from the first one's weights.
  Sweep starting_from_weights(std::size_t runs) {
    fs::copy_file(path(kFirst) / "checkpoint.safetensors", weights);  // optimizer state is not in the way
    options.replace = true;
    training = {};
    Sweep sweep = small_sweep();
    for (std::size_t i = 0; i < runs; ++i) {
      sweep.runs[i].init = weights;
      sweep.runs[i].resolved["init"] = weights.string();
    }
    return sweep;
  }

  const fs::path weights = directory / "weights.safetensors";
};

TEST_F(RestartedSweep, KeepsFinishedRunsAndTrainsTheOthersAnew) {
  EXPECT_THAT(statuses(run_batches(8 + 6, small_sweep())), ElementsAre("completed", "interrupted"));
  const std::string kept = read_file(path(kFirst) / "run.json");
  const SweepOutcome outcome = run(small_sweep());
  EXPECT_THAT(statuses(outcome), ElementsAre("completed", "completed"));
  EXPECT_EQ(training.engines, 1u);
  EXPECT_EQ(read_file(path(kFirst) / "run.json"), kept);
  EXPECT_EQ(outcome.runs[0].epochs.size(), 2u);
  // Each step once: the interrupted start's events are gone.
  EXPECT_EQ(tbwriter::values_of(tbwriter::read_run(path(kSecond)), "Loss/train").size(), 2u);
  EXPECT_EQ(parse_csv(read_file(path("results.csv"))).size(), 5u);
}

// Replaces files by ones that read as those on a broken disk, and puts them back.
class BrokenFile {
 public:
  explicit BrokenFile(fs::path path, const fs::path& link = "/proc/self/mem")
      : path_(std::move(path)), kept_(path_.string() + ".kept") {
    fs::rename(path_, kept_);
    fs::create_symlink(link, path_);
  }
  ~BrokenFile() { fs::rename(kept_, path_); }
  BrokenFile(const BrokenFile&) = delete;
  BrokenFile& operator=(const BrokenFile&) = delete;
  bool is_in_place() const { return fs::is_symlink(path_); }

 private:
  fs::path path_, kept_;
};

TEST_F(RestartedSweep, PutsNothingInThePlaceOfWhatCannotBeRead) {
  EXPECT_THAT(statuses(run(small_sweep())), ElementsAre("completed", "completed"));
  training = {};
  {
    const BrokenFile checkpoint(path(kSecond) / "checkpoint.safetensors");
    PreparedRun run;
    run.network = std::make_shared<const Network>(small_sweep().runs.at(1).network, Shape{1, 2, 2});
    EXPECT_THROW(find_resume_point(run, path(kSecond)), ReadError);
  }
  for (const char* file : {"run.json", "checkpoint.safetensors"}) {
    const BrokenFile finished(path(kFirst) / file);
    EXPECT_THROW(run(small_sweep()), ReadError) << file;
    EXPECT_TRUE(finished.is_in_place());
  }
  {
    const fs::path events = path(kFirst) / tbwriter::list_event_files(path(kFirst)).back();
    const BrokenFile finished(events, events);  // has no size
    EXPECT_THROW(run(small_sweep()), ReadError);
    EXPECT_TRUE(finished.is_in_place());
  }
  EXPECT_THAT(statuses(run(small_sweep())), ElementsAre("completed", "completed"));
  EXPECT_EQ(training.engines, 0u);
}

TEST_F(RestartedSweep, GoesOnWithTheKernelsOfTheCheckpointAndStartsAnewIfThereAreOthers) {
  for (const std::string kernels : {"library", "builtin"}) {
    World world;
    world.training.kernels = "library";
    EXPECT_THAT(statuses(world.run_batches(6, small_sweep())), ElementsAre("interrupted", "pending"));
    world.training.kernels = kernels;
    int engines = 0;
    SweepEnvironment environment = world.environment();
    environment.make_engine = [&](const Network& network, const EngineOptions&) {
      ++engines;
      return std::make_unique<FakeEngine>(network, world.training);
    };
    EXPECT_THAT(statuses(run_sweep(small_sweep(), world.options, environment)),
                ElementsAre("completed", "completed"));
    const std::string log = read_file(world.path(kFirst) / "log.txt");
    if (kernels == "library") {
      EXPECT_EQ(engines, 2) << "one per run";
      EXPECT_EQ(world.training.batches, 4u + 2 * 4) << "the first epoch was finished";
      EXPECT_THAT(log, HasSubstr("resumed after epoch 1"));
      EXPECT_THAT(log, HasSubstr("kernels: library"));
      EXPECT_EQ(read_run_record(world.path(kFirst) / "run.json").kernels, "library");
    } else {
      EXPECT_EQ(engines, 3);
      EXPECT_EQ(world.training.batches, 2u * 2 * 4);
      EXPECT_THAT(log,
                  HasSubstr("not resumed but trained from the start: the checkpoint was trained with other "
                            "kernels than there are now, builtin instead of library"));
    }
  }
}

TEST_F(FinishedSweep, ComparesTheDataOnceAlsoWhenEverythingIsFinished) {
  data_loads = 0;
  EXPECT_EQ(run(small_sweep()).exit_code, 0);
  EXPECT_EQ(data_loads, 1u);
}

TEST_F(RestartedSweep, GoesOnFromThePreviousCheckpointWhereTheNewestIsDamaged) {
  EXPECT_THAT(statuses(run_batches(6, small_sweep())), ElementsAre("interrupted", "pending"));
  const fs::path newest = path(kFirst) / "checkpoint.safetensors",
                 previous = path(kFirst) / "checkpoint.previous.safetensors";
  fs::copy_file(newest, previous);
  tbwriter::spill(newest, std::string(fs::file_size(newest), '\0'));
  EXPECT_THAT(statuses(run(small_sweep())), ElementsAre("completed", "completed"));
  EXPECT_EQ(training.batches, 4u + 2 * 4) << "the first epoch was finished";
  EXPECT_THAT(read_file(path(kFirst) / "log.txt"), HasSubstr("resumed from checkpoint.previous.safetensors"));
  EXPECT_FALSE(fs::exists(previous)) << "the newest is on the disk, so it is of no use any more";
}

TEST_F(RestartedSweep, GoesOnFromTheCheckpointWhoseEventsAreWhole) {
  Sweep sweep = small_sweep();
  for (RunConfig& run : sweep.runs) run.epochs = 3;
  const fs::path checkpoint = path(kFirst) / "checkpoint.safetensors", older = directory.path() / "older";
  run_batches(5, sweep);
  fs::copy_file(checkpoint, older);
  run_batches(5, sweep);
  // A power cut has left the newest checkpoint, but not the end of the events that it speaks of.
  fs::rename(older, path(kFirst) / "checkpoint.previous.safetensors");
  const fs::path events = path(kFirst) / tbwriter::list_event_files(path(kFirst)).back();
  fs::resize_file(events, fs::file_size(events) / 4);
  EXPECT_EQ(run(sweep).exit_code, 0);
  EXPECT_EQ(training.batches, 2 * 4u + 3 * 4u) << "the second epoch again, and the third";
  EXPECT_THAT(read_file(path(kFirst) / "log.txt"),
              HasSubstr("has lost the events that checkpoint.safetensors speaks of; resumed from "
                        "checkpoint.previous.safetensors"));
}

TEST_F(FinishedSweep, TrainsNothingNextToARunThatCannotBeReadAndMayBeTheSame) {
  training = {};
  // As of a start without the axis "device".
  fs::rename(path(kFirst), path("lr=0.5"));
  {
    const BrokenFile record(path("lr=0.5") / "run.json");
    EXPECT_THROW(run(small_sweep()), ReadError);
  }
  EXPECT_EQ(training.engines, 0u);
  EXPECT_FALSE(fs::exists(path(kFirst)));
  EXPECT_EQ(run(small_sweep()).exit_code, 0);
  EXPECT_EQ(training.engines, 0u) << "adopted";
}

// Has the first run recorded as ended, again and again. There has to be one end in its events.
void end_twice(const World& world, RunStatus status, const std::string& reason) {
  RunRecord record = read_run_record(world.path(kFirst) / "run.json");
  record.status = status;
  record.error = reason;
  const RunConfig config = small_run(0, 0.5);
  sweep::Run run = describe_run(config, "cpu");
  run.name = kFirst;
  for (int times = 0; times < 2; ++times)
    record_end({.directory = world.path("."), .clock = [] { return 0.0; }}, run, record);
  const auto events = tbwriter::read_run(world.path(kFirst));
  for (const char* tag : {"status", "_hparams_/session_end_info"})
    EXPECT_EQ(tbwriter::values_of(events, tag).size(), 1u) << tag;
}

TEST_F(RestartedSweep, EndsThePrunedSessionOnceThoughItWasKilledMeanwhile) {
  run_batches(5, small_sweep());
  const fs::path half = path(kFirst) / "run.json.17-00000001-2.tmp";
  tbwriter::spill(half, "half");
  end_twice(*this, RunStatus::kPruned, "not among the best");
  EXPECT_FALSE(fs::exists(half));
}

TEST_F(FinishedSweep, EndsTheSessionOnceThoughALostProcessHadEndedIt) {
  const auto losses = tbwriter::values_of(tbwriter::read_run(path(kFirst)), "Loss/train").size();
  end_twice(*this, RunStatus::kFailed, "its worker was lost");
  EXPECT_EQ(tbwriter::values_of(tbwriter::read_run(path(kFirst)), "Loss/train").size(), losses);
}

TEST_F(FinishedSweep, MakesUpForWhatARunHasLost) {
  const fs::path run_directory = path(kSecond), checkpoint = run_directory / "checkpoint.safetensors";
  const auto events = [&] { return run_directory / tbwriter::list_event_files(run_directory).back(); };
  const struct {
    const char* lost;
    std::function<void()> lose;
    std::size_t batches;  // that are trained again
    const char *told, *logged;
  } cases[] = {
      {"half of run.json", [&] { tbwriter::spill(run_directory / "run.json", "{\"name\": "); }, 0, "", ""},
      {"the checkpoint", [&] { fs::remove(checkpoint); }, 8,
       "was finished, but checkpoint.safetensors is missing; it is trained from the start", ""},
      {"its last byte", [&] { fs::resize_file(checkpoint, fs::file_size(checkpoint) - 1); }, 8,
       "; it is trained from the start", ""},
      {"the events", [&] { fs::resize_file(events(), 0); }, 0, "was finished, but", "wrote the scalars of "},
      {"their last byte", [&] { fs::resize_file(events(), fs::file_size(events()) - 1); }, 0,
       "was finished, but", "wrote the scalars of "},
  };
  const std::string whole = test::tensor_bytes(checkpoint);
  const auto steps = tbwriter::steps_of(tbwriter::read_run(run_directory), "Loss/train");
  for (const auto& [lost, lose, batches, told, logged] : cases) {
    SCOPED_TRACE(lost);
    lose();
    training = {};
    terminal_output.clear();
    EXPECT_THAT(statuses(run(small_sweep())), ElementsAre("completed", "completed"));
    EXPECT_EQ(training.batches, batches);
    EXPECT_THAT(terminal_output, HasSubstr(told));
    EXPECT_THAT(read_file(run_directory / "log.txt"), HasSubstr(logged));
    EXPECT_EQ(tbwriter::steps_of(tbwriter::read_run(run_directory), "Loss/train"), steps);
    EXPECT_TRUE(test::same_bytes(test::tensor_bytes(checkpoint), whole));
  }
}

TEST_F(RestartedSweep, FreshLeavesTheOldDirectoryAlone) {
  options.fresh = true;
  options.command = {"sweep", "small.json", "--fresh"};
  run(small_sweep());
  signal = SIGINT;
  const SweepOutcome outcome = run(small_sweep());
  EXPECT_EQ(outcome.directory.filename(), "small-2");
  EXPECT_EQ(Json::parse(read_file(outcome.directory / "results.json"))["sweep"], "small-2");
  EXPECT_THAT(terminal_output, HasSubstr("sweep resume " + outcome.directory.string() + "\n"));
}

TEST_F(RestartedSweep, ATaskOfAClusterSaysHowToGoOnWithAllRuns) {
  options.takes = [](const RunConfig&) { return true; };
  options.command = {"sweep", "resume", "runs/small", "--join", "--leave", "--list", "sweep-1"};
  signal = SIGUSR2;
  const SweepOutcome outcome = run(small_sweep());
  EXPECT_THAT(terminal_output, HasSubstr("sweep resume " + outcome.directory.string() + "\n"));
}

TEST_F(FinishedSweep, StartsFromTheWeightsOfAFile) {
  run(starting_from_weights(2));
  const TensorFile file = read_safetensors(weights);
  EXPECT_EQ(training.first_parameters.at(0), TensorIndex(file).find("out.weight")->values.at(0));
  EXPECT_EQ(training.first_parameters.at(48), TensorIndex(file).find("out.bias")->values.at(0));
}

TEST_F(FinishedSweep, FailsARunWhoseWeightsWereReplacedSinceTheSweepBegan) {
  const Sweep sweep = starting_from_weights(2);
  training.on_train = [&](const Batch& batch, std::int64_t step) {
    if (training.engines == 1 && step == 0) {
      TensorFile file = read_safetensors(weights);
      file.metadata.clear();
      file.tensors.at(0).values.at(0) += 1;
      write_safetensors(weights, file);
    }
    return Totals{.loss = 0.5, .samples = static_cast<std::int64_t>(batch.indices.size())};
  };
  const SweepOutcome outcome = run(sweep);
  EXPECT_THAT(statuses(outcome), ::testing::ElementsAre("completed", "failed"));
  EXPECT_THAT(outcome.runs.at(1).error.value_or(""),
              HasSubstr("weights.safetensors: was replaced after the sweep had begun"));
}

TEST_F(FinishedSweep, TrainsAnewWhenTheWeightsItStartsFromChanged) {
  const Sweep sweep = starting_from_weights(1);
  run(sweep);
  EXPECT_EQ(training.engines, 1u) << "the other one is kept";
  EXPECT_THAT(terminal_output, HasSubstr("1 run with other settings is trained again"));
  training = {};
  run(sweep);
  EXPECT_EQ(training.engines, 0u);
  fs::copy_file(path(kFirst) / "checkpoint.safetensors", weights, fs::copy_options::overwrite_existing);
  run(sweep);
  EXPECT_EQ(training.engines, 1u);
}

TEST_F(RestartedSweep, GivesRepeatsOtherWeightsAndTheFirstTheSeedsOwn) {
  Sweep sweep = small_sweep(1);
  run(sweep);
  const auto first = training.first_parameters;
  EXPECT_EQ(first, initial_parameters(Network(small_network(), {1, 4, 4}), 7));
  options.replace = true;
  sweep.runs[0].repeat = 1;
  sweep.runs[0].resolved["repeat"] = 1;
  run(sweep);
  EXPECT_NE(training.first_parameters, first);
}

}  // namespace sweep::restarted_sweep_test
