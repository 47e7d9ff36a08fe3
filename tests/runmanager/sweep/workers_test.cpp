// Sweeps with worker processes, healthy and misbehaving ones.
#include <fmt/format.h>

#include <csignal>

#include "core/data/safetensors.h"
#include "proto/worker.pb.h"
#include "runmanager/inspect/verify.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/worker_pool.h"
#include "tests/runmanager/sweep/misbehaviour.h"
#include "tests/support/quarters.h"
#include "tests/support/run_world.h"

namespace sweep::workers_test {

class Workers : public ::testing::Test, protected Quarters {
 protected:
  Workers() {
    ::setenv("MISBEHAVED", (directory_ / "misbehaved").c_str(), 1);
    environment_.worker_command = {SWEEP_MISBEHAVING_WORKER, "worker"};
    options_.threads = 0;
  }

  // "batch_size=20" leaves 10 batches an epoch.
  SweepOutcome run(const std::string& logdir, const std::vector<std::string>& overrides) {
    return Quarters::run(
        logdir, joined({"batch_size=20", "num_workers=0", "epochs=" + std::to_string(epochs_)}, overrides));
  }

  int epochs_ = 4;
};

TEST_F(Workers, GiveTheSameBitsAsOneProcessAnyNumberAtOnceAlsoIfTheyAreStopped) {
  const std::vector<std::string> grid = {"lr=0.02,0.01", "seed=1,2,3"};
  epochs_ = 12;
  const auto command = std::exchange(environment_.worker_command, {});
  const SweepOutcome here = run("here", grid);
  environment_.worker_command = command;
  for (const int jobs : {1, 2, 5, 0}) {
    options_.jobs = jobs;
    told_.clear();
    environment_.stop_requested = [this] {
      return told_.find("epoch 5/12") != std::string::npos ? SIGTERM : 0;
    };
    const std::string logdir = fmt::format("jobs{}", jobs);
    EXPECT_EQ(run(logdir, grid).exit_code, 143) << jobs;
    environment_.stop_requested = [] { return 0; };
    const SweepOutcome there = run(logdir, grid);
    EXPECT_EQ(there.exit_code, 0);
    EXPECT_EQ(bits_of(there), bits_of(here)) << jobs;
    EXPECT_TRUE(jobs == 0 || (there.runs[0].jobs > 1) == (jobs > 1)) << jobs;
  }
}

TEST_F(Workers, LoseExactlyTheBadRunsEachWithItsReason) {
  environment_.stall_seconds = 1;
  const SweepOutcome good = run("good", {"lr=0.02,0.01", "seed=1,2"});
  for (const int jobs : {1, 3}) {
    options_.jobs = jobs;
    const SweepOutcome mixed =
        run(fmt::format("mixed{}", jobs), {"lr=0.02,101,102,103,104,105,106,108,0.01", "seed=1,2"});
    EXPECT_EQ(mixed.exit_code, 1);
    std::map<double, std::string> reasons;
    std::string good_bits;
    for (const RunRecord& run : mixed.runs) {
      const double lr = std::get<double>(run.params.at(0).second);
      if (lr < kCrashes) {
        good_bits += bits_of(run, mixed.directory);
        continue;
      }
      EXPECT_EQ(run.status, RunStatus::kFailed) << run.name;
      EXPECT_EQ(run.epochs.size(), 2u) << "those before the bad step are kept";
      EXPECT_TRUE(fs::exists(mixed.directory / run.name / "checkpoint.safetensors"));
      EXPECT_EQ(read_run_record(mixed.directory / run.name / "run.json").status, RunStatus::kFailed);
      reasons[lr] = run.error.value_or("");
    }
    EXPECT_EQ(good_bits, bits_of(good)) << jobs;
    EXPECT_THAT(reasons[kCrashes], AllOf(HasSubstr("killed by SIGSEGV"), HasSubstr("after epoch 2"),
                                         HasSubstr("epoch 2: loss")));
    EXPECT_THAT(reasons[kHangs], HasSubstr("hanging: no sign of life for"));
    EXPECT_THAT(reasons[kDiverges], HasSubstr("diverged at epoch 3, batch 7"));
    EXPECT_THAT(reasons[kWantsMemory], HasSubstr("out of memory"));
    EXPECT_THAT(reasons[kWantsMemoryAndMustNotThrow], HasSubstr("its worker was lost: out of memory"));
    EXPECT_THAT(reasons[kBreaksItsDevice], HasSubstr("illegal address"));
    EXPECT_THAT(reasons[kLeaves], HasSubstr("ended with exit code 3"));
  }
}

TEST_F(Workers, AndTheirSweepKnowTheSameOfARun) {
  const SweepOutcome outcome = run("runs", {"lr=0.02,0.01,101,0.03", "evaluate_first=true"});
  for (const RunRecord& run : outcome.runs) {
    const RunRecord written = read_run_record(outcome.directory / run.name / "run.json");
    // A worker may put the keys of a layer in another order.
    EXPECT_EQ(nlohmann::json(to_json(run)), nlohmann::json(to_json(written)));
    EXPECT_EQ(run.provenance["dataset"], outcome.runs[0].provenance["dataset"]);
  }
}

TEST_F(Workers, TellTensorBoardThatALostRunFailed) {
  const SweepOutcome outcome = run("runs", {"lr=101"});
  std::string session;
  int ends = 0;
  for (const proto::Event& event : tbwriter::read_run(outcome.directory / outcome.runs.at(0).name)) {
    for (const auto& value : event.summary().value()) {
      if (value.tag() == "_hparams_/session_end_info") ++ends;
      if (value.tag().starts_with("status")) session += value.tensor().string_val(0);
    }
  }
  EXPECT_EQ(ends, 1);
  EXPECT_THAT(session, HasSubstr("SIGSEGV"));
}

TEST_F(Workers, TryAFailedRunAgainFromItsLastFinishedEpochUnlessItDiverged) {
  const SweepOutcome good = run("good", {"lr=0.02"});
  options_.retry = 1;
  const SweepOutcome outcome = run("runs", {"lr=107,103"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.runs.at(0).status, RunStatus::kCompleted);
  ASSERT_EQ(outcome.runs.at(0).epochs.size(), 4u);
  for (std::size_t epoch = 0; epoch < 4; ++epoch)
    EXPECT_EQ(outcome.runs[0].epochs[epoch]["loss"], good.runs.at(0).epochs[epoch]["loss"]) << epoch;
  const std::size_t told = told_.find("will be tried again (1 of 1)");
  ASSERT_NE(told, std::string::npos);
  EXPECT_EQ(told_.find("tried again", told + 20), std::string::npos) << "the same bits would diverge again";
  EXPECT_THAT(read_file(outcome.directory / outcome.runs[0].name / "log.txt"),
              HasSubstr("resumed after epoch 2"));
}

TEST_F(Workers, ThatEndBeforeTheyHaveBegunLeaveTheEpochsOfARun) {
  const std::vector<std::string> crashes = {fmt::format("lr={}", kCrashes)};
  EXPECT_EQ(run("runs", crashes).runs[0].epochs.size(), std::size_t{kLastFinishedEpoch});
  environment_.worker_command = {"/bin/false"};
  const SweepOutcome outcome = run("runs", crashes);
  const RunRecord& lost = outcome.runs[0];
  EXPECT_EQ(lost.status, RunStatus::kFailed);
  EXPECT_EQ(lost.epochs.size(), std::size_t{kLastFinishedEpoch});
  const RunRecord written = read_run_record(outcome.directory / lost.name / "run.json");
  EXPECT_EQ(written.epochs.size(), std::size_t{kLastFinishedEpoch});
}

TEST_F(Workers, LoseOnlyTheRunWhoseDirectoryIsRemoved) {
  std::string removed;
  environment_.stop_requested = [this, &removed] {
    const auto name = told_.find("] ");
    if (removed.empty() && told_.find("epoch 2/") != std::string::npos) {
      removed = told_.substr(name + 2, told_.find("  ", name) - name - 2);
      // In one step: removing file by file, the worker may make another before the directory goes.
      fs::rename(directory_ / "runs" / "quarters" / removed, directory_ / "removed");
    }
    return 0;
  };
  epochs_ = 500;
  const SweepOutcome outcome = run("runs", {"lr=0.02,0.01"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.runs.at(0).status, RunStatus::kFailed);
  EXPECT_THAT(outcome.runs[0].error.value(), HasSubstr("its directory was removed while it was trained"));
  EXPECT_EQ(outcome.runs[0].name, removed);
  EXPECT_EQ(read_run_record(outcome.directory / removed / "run.json").error, outcome.runs[0].error);
  EXPECT_EQ(outcome.runs.at(1).status, RunStatus::kCompleted);
  EXPECT_EQ(run("runs", {"lr=0.02,0.01"}).exit_code, 0) << "the same command makes up for it";
}

TEST_F(Workers, EndWithTheDirectoryOfTheSweep) {
  environment_.stop_requested = [this] {
    std::error_code error;
    if (told_.find("epoch 2/") != std::string::npos)
      fs::rename(directory_ / "runs" / "quarters", directory_ / "runs" / "moved", error);
    return 0;
  };
  for (const int epochs : {2, 100}) {  // noticed with the next run, and by the run itself
    epochs_ = epochs;
    told_.clear();
    EXPECT_THAT(test::message_of<IoError>([&] { run("runs", {"lr=0.02,0.01"}); }),
                HasSubstr("was removed or renamed while the sweep was running"));
    EXPECT_FALSE(fs::exists(directory_ / "runs" / "quarters"))
        << "nobody makes it again, without what was there";
    fs::remove_all(directory_ / "runs" / "moved");
  }
}

TEST_F(Workers, LeaveFailedRunsAloneIfTheyAreNotToBeRetried) {
  run("runs", {"lr=107,0.02"});
  options_.retry_failed = false;
  EXPECT_EQ(run("runs", {"lr=107,0.02"}).exit_code, 1);
  options_.retry_failed = true;
  EXPECT_EQ(run("runs", {"lr=107,0.02"}).exit_code, 0);
}

TEST_F(Workers, VerifyFindsEveryBitThatDiffers) {
  options_.jobs = 2;
  SweepOutcome outcome = run("runs", {"lr=0.02,0.01"});
  const VerifyOptions options{.directory = outcome.directory, .threads = 2};
  for (const VerifiedRun& verified : verify_sweep(options, environment_).runs)
    EXPECT_THAT(verified.differences, IsEmpty()) << verified_text(verified);
  EXPECT_EQ(verify_sweep({.directory = outcome.directory, .runs = 1}, environment_).runs.size(), 1u);

  const fs::path weights = outcome.directory / outcome.runs.at(0).name / "checkpoint.safetensors";
  TensorFile file = read_safetensors(weights);
  file.tensors.at(0).values.at(3) += 1e-6f;
  file.tensors.at(1).name = "other";
  write_safetensors(weights, file);
  outcome.runs.at(0).kernels = "a library";
  EpochRecord& epoch = outcome.runs.at(1).epochs.at(1);
  epoch.set("loss", epoch["loss"].value() * (1 + 1e-15));
  for (const RunRecord& run : outcome.runs)
    tbwriter::spill(outcome.directory / run.name / "run.json", run_record_text(run));
  const VerifyReport report = verify_sweep(options, environment_);
  EXPECT_EQ(report.exit_code, 1);
  ASSERT_EQ(report.runs.size(), 2u);
  EXPECT_THAT(verified_text(report.runs[0]),
              AllOf(HasSubstr("conv1.weight: 1 of 36 values differ"), HasSubstr("conv1.bias was not there"),
                    HasSubstr("other is missing"), HasSubstr("they were a library")));
  EXPECT_THAT(verified_text(report.runs[1]), HasSubstr("epoch 2: loss was"));
  EXPECT_EQ(report.runs[1].differences.size(), 1u);
}

TEST_F(Workers, VerifyComparesBitsThatNobodyPromisedWhereTheKernelsKeepThem) {
  epochs_ = 2;
  SweepOutcome outcome = run("runs", {"deterministic=true,false"});
  ASSERT_EQ(outcome.runs.size(), 2u);
  EXPECT_EQ(outcome.runs[0].config.at("deterministic"), true);
  EXPECT_EQ(outcome.runs[1].config.at("deterministic"), false);
  const VerifyReport report = verify_sweep({.directory = outcome.directory}, environment_);
  EXPECT_EQ(report.exit_code, 0);
  for (const VerifiedRun& verified : report.runs)
    EXPECT_EQ(verified_text(verified), verified.name + ": every bit is the same") << "the CPU has one order";

  // As if a GPU's libraries had trained the second.
  const fs::path file = outcome.directory / outcome.runs[1].name / "checkpoint.safetensors";
  TensorFile checkpoint = read_safetensors(file);
  checkpoint.tensors[0].values[0] += 1;
  write_safetensors(file, checkpoint);
  outcome.runs[1].kernels = "cuDNN 9 in any order on a GPU";
  tbwriter::spill(file.parent_path() / "run.json", run_record_text(outcome.runs[1]));
  const VerifyReport second = verify_sweep({.directory = outcome.directory}, environment_);
  EXPECT_EQ(second.exit_code, 0);
  ASSERT_EQ(second.runs.size(), 2u);
  EXPECT_EQ(second.runs[0].not_compared, "");
  EXPECT_THAT(second.runs[1].differences, IsEmpty());
  EXPECT_THAT(verified_text(second.runs[1]),
              AllOf(HasSubstr("deterministic=false: not compared: trained with \"deterministic\": false"),
                    HasSubstr("cuDNN 9")));
}

TEST_F(Workers, VerifyRefusesWhatIsNoSweep) {
  EXPECT_THROW(verify_sweep({.directory = directory_ / "missing"}, environment_), DataError);
}

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096 / 1e6;
}

TEST_F(Workers, DoNotMakeTheSweepGrowWithTheNumberOfRuns) {
  options_.quiet = true;
  options_.jobs = 2;
  std::string seeds = "seed=0";
  for (int i = 1; i < 150; ++i) seeds += "," + std::to_string(i);
  epochs_ = 1;
  double first = 0;
  std::size_t files = 0, looks = 0;
  // Called repeatedly while runs are trained.
  environment_.stop_requested = [&] {
    if (++looks == 40) {
      first = resident_megabytes();
      files = open_files();
    }
    // Some files are open because they are being written, and every ten seconds 32 at a time are synced.
    EXPECT_LE(looks < 40 ? 0 : open_files(), files + 6 + 32);
    return 0;
  };
  EXPECT_EQ(run("runs", {"lr=0.02", seeds}).exit_code, 0);
  EXPECT_GT(looks, 40u);
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(resident_megabytes() - first, 5);
#endif
}

// A run that is trained by another program in the place of a worker, which has said something or ended.
struct BegunRun {
  explicit BegunRun(std::vector<std::string> words)
      : pool({.words = std::move(words), .inherited = {}}, directory.path(), datasets, 1) {
    pool.start(0, run, {}, 1);
    pool.wait(std::chrono::seconds(60));
  }

  const TemporaryDirectory directory;
  const std::vector<SharedDataset> datasets;
  const RunConfig config = small_run(0, 0.5);
  const ScheduledRun run{.config = &config, .needs = {}};
  WorkerPool pool;
};

TEST(WorkerPool, DoesNotTakeAnErrorOfItsCallerForADamagedMessage) {
  proto::FromWorker message;
  message.set_phase("validation");
  std::string bytes = message.SerializeAsString(), octal = fmt::format("\\{:03o}\\0\\0\\0", bytes.size());
  for (const char byte : bytes) octal += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  BegunRun begun({"/bin/bash", "-c", fmt::format("printf '{}' >&$0; sleep 100", octal)});
  const auto report = [](const RunEvent& event) {
    ASSERT_TRUE(std::holds_alternative<RunPhase>(event));
    throw DataError("a file of the caller's");
  };
  EXPECT_EQ(test::message_of<DataError>([&] {
              for (int tries = 0; tries < 100; ++tries) {  // It may come in parts.
                begun.pool.deliver(0, report);
                begun.pool.wait(std::chrono::milliseconds(100));
              }
            }),
            "a file of the caller's");
}

TEST(WorkerPool, AsksNoWorkerToStopThatIsLost) {
  BegunRun begun({"/bin/true"});
  bool was_told = false;
  begun.pool.deliver(0, [&](const RunEvent& event) {
    was_told = std::holds_alternative<LostRun>(event);
    begun.pool.request_stop(0, SIGTERM);
  });
  EXPECT_TRUE(was_told);
}

TEST(WorkerProcess, SaysWhyItCannotBeSetUpAndEnds) {
  WorkerProcess worker({.words = {SWEEP_MISBEHAVING_WORKER, "worker"}, .inherited = {}});
  proto::ToWorker message;
  proto::SharedMemory& memory = *message.mutable_setup()->add_datasets();
  memory.set_fd(999);
  memory.set_description("no description");
  ASSERT_TRUE(worker.socket().send(message));
  proto::FromWorker answer;
  ASSERT_TRUE(worker.socket().receive(answer));
  EXPECT_TRUE(answer.has_failed());
  EXPECT_FALSE(worker.socket().receive(answer));
  EXPECT_EQ(worker.exit_reason(), "ended with exit code 0");
}

}  // namespace sweep::workers_test
