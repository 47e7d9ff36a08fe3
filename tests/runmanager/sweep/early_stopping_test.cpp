// Epoch 0, early stopping and the weights of the best epoch.

#include "core/json/json_text.h"
#include "runmanager/inspect/fsck.h"
#include "runmanager/inspect/verify.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "tests/runmanager/sweep/search_fixture.h"

namespace sweep::early_stopping_test {

class EvaluateFirst : public ::testing::Test, protected World {};
using RestoreBest = EvaluateFirst;

TEST_F(EvaluateFirst, MeasuresTheUntrainedNetworkAsEpochZeroWhenAsked) {
  training.evaluation_loss = 2.5;
  Sweep sweep = small_sweep();
  for (RunConfig& run : sweep.runs) run.evaluate_first = true;
  const SweepOutcome outcome = run(sweep);
  EXPECT_EQ(outcome.runs[0].epochs.size(), 2u);
  EXPECT_EQ(outcome.runs[0].untrained.value()["validation_loss"], 2.5);
  const auto events = tbwriter::read_run(path(kFirst));
  for (const char* tag : {"Accuracy/validation", "Loss/validation", "Number Correct/validation"})
    EXPECT_EQ(tbwriter::steps_of(events, tag).at(0), 0) << tag;
  EXPECT_EQ(tbwriter::steps_of(events, "Loss/train").at(0), 1);
  const auto rows = parse_csv(read_file(options.logdir / "small" / "results.csv"));
  ASSERT_EQ(rows.size(), 1u + 2 * 3);
  EXPECT_THAT(std::vector(rows[1].begin() + 2, rows[1].begin() + 9),
              ElementsAre("0", "", "", "", "2.5", "1", ""));
  EXPECT_EQ(rows[1][10], "") << "images per second";
  EXPECT_EQ(rows[2][2], "1");
  const Json epochs = read_json_file(path(kFirst) / "run.json")["epochs"];
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[0]["epoch"], 0);
  EXPECT_TRUE(epochs[0]["loss"].is_null());
  EXPECT_EQ(epochs[0]["validation_loss"], 2.5);
  EXPECT_THAT(terminal_output, HasSubstr("epoch 0/2  val loss 2.5000  val acc 100.00%\n"));
  EXPECT_EQ(check_directory(options.logdir / "small").damaged(), 0u);
}

TEST_F(EvaluateFirst, KeepsEpochZeroAcrossAResumeAndContinuesARunWithoutIt) {
  Sweep sweep = small_sweep(1);
  run(sweep);
  sweep.runs[0].evaluate_first = true;
  sweep.runs[0].epochs = 3;  // continues without
  sweep.runs[0].resolved["epochs"] = 3;
  EXPECT_FALSE(run(sweep).runs[0].untrained);
  options.fresh = true;
  sweep.runs[0].epochs = 1;
  sweep.runs[0].resolved["epochs"] = 1;
  run(sweep);
  options.fresh = false;
  sweep.name = "small-2";
  sweep.runs[0].epochs = 2;
  sweep.runs[0].resolved["epochs"] = 2;
  training.evaluation_loss = 7;
  const SweepOutcome resumed = run(sweep);
  EXPECT_EQ(resumed.runs[0].untrained.value()["validation_loss"], 0.25) << "of the first start";
  EXPECT_EQ(resumed.runs[0].epochs.at(1)["validation_loss"], 7);
}

class EarlyStopping : public ::testing::Test, protected Quarters {
 protected:
  // A run that reaches its best accuracy soon and is stopped a few epochs later. `more`: further overrides.
  Sweep sweep(const std::vector<std::string>& more = {}, const std::string& epochs = "epochs=30") const {
    return unstopped(epochs, joined({R"(stop={"metric":"Accuracy/validation","patience":3})"}, more));
  }
  Sweep unstopped(const std::string& epochs, const std::vector<std::string>& more = {}) const {
    return Quarters::sweep(joined({"batch_size=20", "num_workers=0", "log.histograms=false", epochs}, more));
  }
};

// Keras' EarlyStopping with mode="max", as its documentation has it: the epoch after which it stops, or 0.
int keras_stop(const std::vector<EpochRecord>& epochs, int patience) {
  double best = -1;
  int wait = 0;
  for (const EpochRecord& epoch : epochs) {
    ++wait;
    if (*epoch["validation_accuracy"] > best) {
      best = *epoch["validation_accuracy"];
      wait = 0;
    }
    if (wait >= patience) return epoch.epoch;
  }
  return 0;
}

TEST_F(EarlyStopping, EndsTheRunAfterAsManyEpochsWithoutImprovementAsKerasDoes) {
  const SweepOutcome whole = start("whole", unstopped("epochs=30"));
  const int expected = keras_stop(whole.runs[0].epochs, 3);
  ASSERT_GT(expected, 3);
  ASSERT_LT(expected, 30);
  const SweepOutcome stopped = start("runs", sweep());
  const RunRecord& record = stopped.runs[0];
  EXPECT_EQ(record.status, RunStatus::kCompleted);
  ASSERT_EQ(record.epochs.size(), static_cast<std::size_t>(expected));
  EXPECT_EQ(record.epochs.back()["loss"], whole.runs[0].epochs[record.epochs.size() - 1]["loss"]);
  EXPECT_TRUE(record.metrics.contains("test_accuracy"));
  const Json json = read_json_file(run_directory(stopped) / "run.json");
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["stopped"]["epoch"], expected);
  EXPECT_THAT(json["stopped"]["reason"].get<std::string>(),
              HasSubstr("Accuracy/validation has not improved for 3 epochs; it was best in epoch"));
  EXPECT_FALSE(json.contains("best_epoch")) << "nobody asked for its weights";
  EXPECT_FALSE(read_json_file(run_directory(whole) / "run.json").contains("stopped"));
  EXPECT_THAT(out_.str(), HasSubstr(std::to_string(expected) + " of 30"));
  const FsckReport report = check_directory(stopped.directory);
  EXPECT_EQ(report.damaged(), 0u) << fsck_text(report);
}

TEST_F(EarlyStopping, AStoppedRunIsFinishedAlsoForMoreEpochsButNotForAnotherStop) {
  const SweepOutcome stopped = start("runs", sweep());
  const std::string kept = read_file(run_directory(stopped) / "run.json");
  for (const char* epochs : {"epochs=30", "epochs=60", "epochs=2"}) {
    start("runs", sweep({}, epochs));
    EXPECT_EQ(read_file(run_directory(stopped) / "run.json"), kept) << epochs;
  }
  for (const char* stop : {"stop.patience=4", R"(stop.metric="Loss/train")", "stop.min_delta=0.5"}) {
    EXPECT_THAT(test::message_of<ConfigError>([&] { start("runs", sweep({stop})); }), HasSubstr("stop."))
        << stop;
  }
  // One that came to its end goes on with more epochs, and is then stopped as if it had them from the start.
  const SweepOutcome shorter = start("shorter", sweep({}, "epochs=3"));
  EXPECT_EQ(shorter.runs[0].epochs.size(), 3u);
  EXPECT_EQ(shorter.runs[0].stop_reason, "");
  EXPECT_EQ(bits_of(start("shorter", sweep())), bits_of(stopped));
}

// tag -> steps of all values, in the order of the files.
std::map<std::string, std::vector<std::int64_t>> steps_of(const fs::path& run) {
  std::map<std::string, std::vector<std::int64_t>> steps;
  for (const proto::Event& event : tbwriter::read_run(run)) {
    for (const auto& value : event.summary().value()) steps[value.tag()].push_back(event.step());
  }
  return steps;
}

TEST_F(EarlyStopping, StoppedBySignalsAnywhereEndsWithTheSameBitsStepsAndBestEpoch) {
  const Sweep asked =
      sweep({"evaluate_first=true", "stop.restore_best=true", "checkpoint=best", "log.batches=3"});
  const SweepOutcome whole = start("whole", asked);
  const auto whole_steps = steps_of(run_directory(whole));
  const RunRecord& record = whole.runs[0];
  ASSERT_NE(record.stop_reason, "");
  ASSERT_TRUE(record.best_epoch.has_value());
  ASSERT_LT(*record.best_epoch, record.epochs.back().epoch);
  // Looks per epoch: 10 batches and 2 of validation, which also come before the first.
  const int all = 2 + 12 * static_cast<int>(record.epochs.size()) + 3;
  std::vector<int> stops = {all - 2, all - 1};  // in the test
  for (int looks = 0; looks < all - 2; looks += 7) stops.push_back(looks);
  for (const int looks : stops) {
    const std::string logdir = "stopped" + std::to_string(looks);
    const SweepOutcome stopped = run_stopping(looks, logdir, asked), resumed = start(logdir, asked);
    EXPECT_EQ(stopped.exit_code, 143) << looks;
    EXPECT_EQ(resumed.exit_code, 0) << looks;
    EXPECT_EQ(bits_of(resumed), bits_of(whole)) << looks;
    EXPECT_EQ(steps_of(run_directory(resumed)), whole_steps) << looks;
    for (std::size_t epoch = 0; epoch < stopped.runs[0].epochs.size(); ++epoch) {
      EXPECT_EQ(resumed.runs[0].epochs[epoch]["epoch_seconds"],
                stopped.runs[0].epochs[epoch]["epoch_seconds"])
          << "a finished epoch was trained again";
    }
    EXPECT_GE(resumed.runs[0].run_seconds.value(), resumed.runs[0].epochs.back()["run_seconds"]);
  }
}

TEST_F(EarlyStopping, TheBestEpochsFileIsTheCheckpointOfARunThatEndsThere) {
  const SweepOutcome stopped = start("runs", sweep({"checkpoint=best"}));
  const RunRecord& record = stopped.runs[0];
  const int best = record.best_epoch.value();
  EXPECT_EQ(read_json_file(run_directory(stopped) / "run.json")["best_epoch"], best);
  for (const EpochRecord& epoch : record.epochs) {
    EXPECT_LE(*epoch["validation_accuracy"],
              *record.epochs[static_cast<std::size_t>(best) - 1]["validation_accuracy"]);
  }
  const std::string epochs = "epochs=" + std::to_string(best);
  const SweepOutcome until = start("until", sweep({}, epochs));
  const auto expect_same_weights = [](const fs::path& a, const fs::path& b) {
    EXPECT_TRUE(test::same_bytes(test::tensor_bytes(a), test::tensor_bytes(b)));
  };
  expect_same_weights(run_directory(stopped) / "best.safetensors",
                      run_directory(until) / "checkpoint.safetensors");
  EXPECT_EQ(record.metrics, until.runs[0].metrics) << "the test is the best epoch's";
  const SweepOutcome restored = start("restored", sweep({"stop.restore_best=true"}));
  EXPECT_EQ(restored.runs[0].metrics, until.runs[0].metrics);
  expect_same_weights(run_directory(restored) / "checkpoint.safetensors",
                      run_directory(stopped) / "checkpoint.safetensors");
  EXPECT_FALSE(fs::exists(run_directory(until) / "best.safetensors"));
}

TEST_F(RestoreBest, RefusesTheFileOfAnotherEpoch) {
  Sweep sweep = small_sweep(1);
  run(sweep);
  const fs::path other = directory.path() / "other.safetensors";
  fs::copy_file(path(kFirst) / "checkpoint.safetensors", other);
  options.fresh = true;
  sweep.runs[0].checkpoint = kKeepBest;
  training = {};
  training.on_train = [&](const Batch& batch, std::int64_t step) {
    const fs::path best = options.logdir / "small-2" / kFirst / "best.safetensors";
    if (step == 7) {
      // The first epoch's is written while the second is trained.
      for (int i = 0; i < 10000 && !fs::exists(best); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      fs::copy_file(other, best, fs::copy_options::overwrite_existing);
    }
    return Totals{.loss = 0.5, .samples = static_cast<std::int64_t>(batch.indices.size())};
  };
  const RunRecord record = run(sweep).runs.at(0);
  EXPECT_EQ(record.best_epoch, 1);
  EXPECT_THAT(record.error.value_or(""),
              HasSubstr("best.safetensors: is of epoch 2, not of the best epoch, 1"));
}

TEST_F(EarlyStopping, WithoutStopTheBestEpochIsThatOfTheSmallestLoss) {
  const RunRecord validated = start("runs", unstopped("epochs=4", {"checkpoint=best"})).runs[0];
  const auto smallest = std::ranges::min_element(
      validated.epochs, {}, [](const EpochRecord& epoch) { return *epoch["validation_loss"]; });
  EXPECT_EQ(validated.best_epoch, smallest->epoch);
  EXPECT_EQ(validated.epochs.size(), 4u);
  const Sweep without = unstopped("epochs=4", {"checkpoint=best", "dataset.validation=0"});
  const RunRecord trained = start("without", without).runs[0];
  EXPECT_EQ(trained.best_epoch, std::ranges::min_element(trained.epochs, {}, [](const EpochRecord& epoch) {
                                  return epoch["loss"];
                                })->epoch);
}

// A search may end a trial that was killed then, by its record alone.
TEST_F(EarlyStopping, ARunThatGoesOnHasItsBestEpochInItsFirstRecord) {
  const Sweep asked = sweep({"checkpoint=best"});
  const fs::path run = run_directory(run_stopping(12 + 5, "runs", asked));
  fs::remove(run / "best.safetensors");
  fs::create_directories(run / "best.safetensors/in its way");
  EXPECT_THROW(start("runs", asked), IoError);
  EXPECT_EQ(read_run_record(run / "run.json").best_epoch, 1);
}

// As after a kill between the writing of a checkpoint and of its other name, and as after a loss of the file.
TEST_F(EarlyStopping, MendsTheBestEpochsFileOrTrainsAnewWhereItIsLost) {
  const Sweep asked = sweep({"checkpoint=best"});
  const SweepOutcome whole = start("whole", asked);
  const int best = whole.runs[0].best_epoch.value();
  for (const int epoch : {1, best + 1}) {
    for (const bool lost : {true, false}) {
      const std::string logdir = "mended" + std::to_string(epoch) + (lost ? "lost" : "damaged");
      const fs::path file = run_directory(run_stopping(12 * epoch + 5, logdir, asked)) / "best.safetensors";
      ASSERT_TRUE(fs::exists(file)) << logdir;
      fs::remove(file);
      if (!lost) tbwriter::spill(file, "no weights");
      const SweepOutcome resumed = start(logdir, asked);
      EXPECT_EQ(bits_of(resumed), bits_of(whole)) << logdir;
      const std::string log = read_file(run_directory(resumed) / "log.txt");
      EXPECT_EQ(log.find("best.safetensors is not that of epoch") != std::string::npos, epoch > best) << log;
    }
  }
  // A finished run that lost the file is not kept.
  fs::remove(run_directory(whole) / "best.safetensors");
  FsckReport report = check_directory(whole.directory);
  EXPECT_EQ(report.damaged(), 1u) << fsck_text(report);
  EXPECT_THAT(fsck_text(report), HasSubstr("is missing: the weights of epoch"));
  const std::string bits = bits_of(start("mended1lost", asked));
  EXPECT_EQ(bits_of(start("whole", asked)), bits);
  // One of another epoch is found, too.
  fs::copy_file(run_directory(whole) / "checkpoint.safetensors", run_directory(whole) / "best.safetensors",
                fs::copy_options::overwrite_existing);
  report = check_directory(whole.directory);
  EXPECT_THAT(fsck_text(report), HasSubstr("but run.json calls " + std::to_string(best) + " the best"));
}

TEST_F(EarlyStopping, IsVerifiedWithItsBestEpochAndItsEpochZero) {
  const SweepOutcome stopped = start("runs", sweep({"checkpoint=best", "evaluate_first=true"}));
  const auto verify = [&] {
    std::string text;
    verify_sweep({.directory = stopped.directory,
                  .on_run = [&text](const VerifiedRun& run) { text += verified_text(run); }},
                 environment_);
    return text;
  };
  EXPECT_THAT(verify(), HasSubstr("every bit is the same"));
  RunRecord record = stopped.runs[0];
  record.untrained->set("validation_loss", *(*record.untrained)["validation_loss"] + 1e-9);
  tbwriter::spill(run_directory(stopped) / "run.json", run_record_text(record));
  fs::copy_file(run_directory(stopped) / "checkpoint.safetensors",
                run_directory(stopped) / "best.safetensors", fs::copy_options::overwrite_existing);
  const std::string differs = verify();
  EXPECT_THAT(differs, HasSubstr("epoch 0: validation_loss was"));
  EXPECT_THAT(differs, HasSubstr("best.safetensors: conv1.weight:"));
}

// A finished run that is given more epochs goes on to the bits of a run that had them from the start, with
// every schedule that allows it.

class ContinuedRuns : public ::testing::TestWithParam<const char*>, protected Quarters {
 protected:
  ContinuedRuns() {
    Json file = test::quarters_file();
    file.update(
        Json::parse(R"({"lr": 0.02, "params": {"optimizer": ["adam", "sgd"], "optimizer.momentum": [0.9]},
                               "when": {"optimizer.momentum": {"optimizer": "sgd"}}})"));
    file["schedule"] = Json::parse(GetParam());
    write_file_atomically(directory_ / file_, file.dump());
  }
};

using GoOn = ContinuedRuns;
TEST_P(GoOn, ToTheBitsOfRunsThatHadAllEpochsFromTheStart) {
  const auto run_epochs = [this](const char* logdir, const char* epochs) {
    SweepOutcome outcome = run(logdir, {"checkpoint=best", epochs});
    EXPECT_EQ(outcome.exit_code, 0);
    return outcome;
  };
  const SweepOutcome first = run_epochs("continued", "epochs=3"),
                     continued = run_epochs("continued", "epochs=7"), whole = run_epochs("whole", "epochs=7");
  ASSERT_EQ(whole.runs.size(), 2u);
  EXPECT_EQ(bits_of(continued), bits_of(whole)) << "those of the best epoch's weights, too";
  for (std::size_t i = 0; i < whole.runs.size(); ++i) {
    EXPECT_EQ(continued.runs[i].epochs.size(), 7u);
    EXPECT_EQ(continued.runs[i].started, first.runs[i].started) << "trained anew";
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, GoOn,
                         ::testing::Values(R"("constant")",
                                           R"({"name": "step", "step_size": 2, "gamma": 0.5})",
                                           R"({"name": "cosine", "T_max": 5, "eta_min": 0.001})",
                                           R"({"name": "warmup", "total_iters": 2})",
                                           // The end of the first epochs is inside the warmup.
                                           R"({"name": "warmup", "total_iters": 4,
                                               "then": {"name": "step", "step_size": 1}})",
                                           R"({"name": "warmup", "total_iters": 2,
                                               "then": {"name": "cosine", "T_max": 4}})"));

using CannotGoOn = ContinuedRuns;
TEST_P(CannotGoOn, AndSayThatTheScheduleSpreadsOverAllEpochs) {
  const SweepOutcome first = run("runs", {"epochs=2"});
  const std::string before = bits_of(first),
                    message = test::message_of<ConfigError>([&] { run("runs", {"epochs=3"}); });
  const bool is_cycle = std::string(GetParam()).find("one_cycle") != std::string::npos;
  EXPECT_THAT(message,
              AllOf(HasSubstr("2 runs there have other settings than are asked for now:"),
                    HasSubstr(std::string("epochs: 2 -> 3 (the schedule, ") +
                              (is_cycle ? "one_cycle" : "cosine without T_max") +
                              ", spreads over all epochs, so every one of them has other learning rates)"),
                    HasSubstr("--replace trains them again")));
  EXPECT_EQ(bits_of(run("runs", {"epochs=2"})), before) << "nothing was changed";
}

INSTANTIATE_TEST_SUITE_P(Schedules, CannotGoOn,
                         ::testing::Values(R"("one_cycle")", R"({"name": "one_cycle", "three_phase": true})",
                                           R"("cosine")",
                                           R"({"name": "warmup", "total_iters": 1, "then": "cosine"})"));

// An earlier start may have taken longer for logs than this one took for all.
TEST(SweepCost, CountsOfAResumedRunOnlyWhatThisStartTook) {
  TemporaryDirectory directory;
  double seconds = 0;
  RunRecord record;
  record.name = "run";
  SweepRecorder recorder({.directory = directory.path(),
                          .name = "sweep",
                          .keys = {},
                          .clock = [&seconds] { return seconds; },
                          .terminal = {.write = [](std::string_view) {}}},
                         {}, {record});
  recorder.begin_run(0, record);
  recorder.take(0, RunPlan{.name = "run", .finished_epochs = {EpochRecord(1, {{"run_seconds", 90}})}});
  seconds = 12;
  record.run_seconds = 100;
  record.logging_seconds = 40;
  recorder.update(0, record);
  recorder.pause_run(0);
  EXPECT_DOUBLE_EQ(recorder.cost().logging_seconds, 4);
  EXPECT_DOUBLE_EQ(recorder.cost().training_seconds, 6);
  // A copy's record has the time of the run that it continues, of which its last epoch does not tell all.
  record.run_seconds = record.logging_seconds = 0;
  recorder.update(0, record);
  recorder.begin_run(0, record);
  seconds = 13;
  record.run_seconds = record.logging_seconds = 9;
  recorder.update(0, record);
  recorder.pause_run(0);
  EXPECT_DOUBLE_EQ(recorder.cost().seconds, 13);
  EXPECT_DOUBLE_EQ(recorder.cost().logging_seconds, 5) << "all of that second";
  EXPECT_DOUBLE_EQ(recorder.cost().training_seconds, 6);
}

}  // namespace sweep::early_stopping_test
