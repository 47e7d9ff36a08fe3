// Several devices and several processes that train one network, as the program does it.

#include "tests/tools/mpi_program.h"

namespace sweep::testing::parallel_program_test {

class ParallelProgram : public ProgramFolder {
 protected:
  ParallelProgram() { write_shared_training(folder_, "cpu"); }

  std::vector<json> values(const std::string& sweep) const { return measured(record(sweep + "/run")); }
};

TEST_F(ParallelProgram, ARunGoesOnWithAnyNumberOfDevicesToTheSameBits) {
  run({"s.json", "epochs=4", "name=one", "--quiet"});
  const char* devices[] = {"parallel.data=4", "parallel.data=2",
                           R"(parallel={"pipeline": {"stages": 2, "micro_batches": 3}})",
                           R"(parallel={"data": 3, "model": {"out": "cpu:1", "*": "cpu:0"}})"};
  for (std::size_t i = 0; i < std::size(devices); ++i)
    run({"s.json", "epochs=" + std::to_string(i + 1), "name=several", devices[i], "--quiet", "--threads=4"});
  EXPECT_EQ(values("several"), values("one"));
  EXPECT_EQ(values("one").size(), 4u);
}

TEST_F(ParallelProgram, SaysHowLongDevicesWaitedForEachOther) {
  run({"s.json", "parallel.data=2", "--quiet"});
  EXPECT_GT(record("s/run").at("epochs").at(0).at("communication_seconds").get<double>(), 0);
  run({"s.json", "name=alone", "--quiet"});
  EXPECT_FALSE(record("alone/run").at("epochs").at(0).contains("communication_seconds"));
}

TEST_F(ParallelProgram, InSeveralProcessesGivesTheSameBits) {
  if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty()) GTEST_SKIP() << reason;
  run({"s.json", "epochs=2", "name=one", "--quiet"});
  for (const int ranks : {2, 3}) {
    const std::string name = "processes-" + std::to_string(ranks);
    const Finished finished = run_mpi(
        ranks, {"s.json", "epochs=2", "name=" + name, "parallel.data=" + std::to_string(ranks), "--quiet"},
        folder_.path());
    ASSERT_EQ(finished.code, 0) << finished.err;
    EXPECT_EQ(values(name), values("one"));
    EXPECT_FALSE(std::filesystem::exists(path("runs") / (name + "-2"))) << "one rank alone writes";
  }
}

TEST_F(ParallelProgram, InMoreProcessesThanDevicesSaysWhatIsAllowed) {
  if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty()) GTEST_SKIP() << reason;
  const Finished finished = run_mpi(3, {"s.json", "parallel.data=2"}, folder_.path());
  EXPECT_THAT(finished.err + finished.out, HasSubstr("with 3 MPI ranks, want 3 or a multiple of it"));
}

TEST_F(ParallelProgram, InSeveralProcessesRefusesOptionsOfWorkers) {
  if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* option : {"--jobs=2", "--timeout=9"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    const std::string message = name + ": needs worker processes, which ranks of MPI do not have";
    Finished finished;
    // On a busy machine mpirun may lose what a rank says before it ends with an error.
    for (int starts = 0; starts < 3 && finished.err.find(message) == std::string::npos; ++starts)
      finished = run_mpi(2, {"s.json", option}, folder_.path());
    EXPECT_THAT(finished.err, HasSubstr(message));
  }
}

// By another MPI than the one of the program, or by srun without PMIx.
TEST_F(ParallelProgram, StartedWithOthersThatItDoesNotKnowSaysSo) {
  for (const char* variable : {"PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const test::Environment ranks(variable, "4");
    EXPECT_THAT(run({"s.json", "--quiet"}, 2).err,
                HasSubstr("4 processes were started that do not know each other"));
    run({"s.json", "name=" + std::string(variable), "--join", "--quiet"});
  }
}

// As a batch system does it before the time of a job is up. A rank may also have a signal for itself.
TEST_F(ParallelProgram, InSeveralProcessesStopsInOrderIfAllOfThemHaveTheSignal) {
  if (const std::string reason = mpi_unusable_reason(folder_.path()); !reason.empty()) GTEST_SKIP() << reason;
  const std::string signals =
      "RANK=$OMPI_COMM_WORLD_RANK; { for look in $(seq 600); do "
      "[ -e runs/stopped/run/checkpoint.safetensors ] && break; sleep 0.1; done; "
      "[ $RANK = 0 ] || kill -HUP $$; kill -USR2 $$; } > /dev/null 2>&1 &";
  const Finished finished =
      run_mpi(2, {"s.json", "epochs=100000", "name=stopped", "parallel.data=2", "--quiet"}, folder_.path(),
              signals + " true");
  EXPECT_EQ(finished.code, 75) << finished.err;
  EXPECT_EQ(record("stopped/run").at("status"), "interrupted");
}

}  // namespace sweep::testing::parallel_program_test
