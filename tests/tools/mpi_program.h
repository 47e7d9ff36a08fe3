// Runs the built program as the ranks of an MPI launcher, on pictures of its own. For tests with
// SWEEP_PROGRAM.
#pragma once

#include "core/parallel/mpi_session.h"
#include "tests/support/data_files.h"
#include "tests/support/program_folder.h"

namespace sweep::testing {

/// Open MPI's launcher, with what it needs on a machine whose cores are fewer than the ranks. It leaves
/// memory behind when it ends, which LeakSanitizer would count as ours. `setting`: a variable of each rank's
/// environment, "NAME=$OMPI_COMM_WORLD_RANK".
inline Finished run_mpi(int ranks, const std::vector<std::string>& words,
                        const std::filesystem::path& directory, const std::string& setting = "RANKS=1") {
  const std::vector<std::string> all = {"ASAN_OPTIONS=detect_leaks=0",
                                        "OMPI_MCA_pml=ob1",
                                        "OMPI_MCA_btl=self,vader",
                                        "OMPI_MCA_btl_vader_single_copy_mechanism=none",
                                        "OMPI_MCA_mpi_yield_when_idle=1",
                                        "mpirun",
                                        "--allow-run-as-root",
                                        "--oversubscribe",
                                        "--bind-to",
                                        "none",
                                        "-n",
                                        std::to_string(ranks),
                                        "/bin/sh",
                                        "-c",
                                        "export " + setting + "; exec \"$0\" \"$@\"",
                                        program_path(SWEEP_PROGRAM)};
  return run_program("/usr/bin/env", joined(all, words), directory);
}

/// Why the program cannot be started by MPI here; empty if it can.
inline std::string mpi_unusable_reason(const std::filesystem::path& directory) {
  if (const auto reason = mpi_missing_reason()) return *reason;
  const bool has_launcher = run_program("/bin/sh", {"-c", "command -v mpirun"}, directory).code == 0;
  return has_launcher ? "" : "mpirun is not installed";
}

/// Loss, accuracy and validation loss of every epoch.
inline std::vector<json> measured(const json& record) {
  std::vector<json> all;
  for (const json& epoch : record.at("epochs"))
    all.push_back({epoch.at("loss"), epoch.at("accuracy"), epoch.at("validation_loss")});
  return all;
}

/// Writes data/ and s.json: a network with batch normalization and dropout on 300 pictures, for `device`.
inline void write_shared_training(const SweepFolder& folder, const std::string& device) {
  test::write_idx_set(folder.path() / "data", "train", 300, 28,
                      [](auto i, auto y, auto x) { return (i % 10) * 25 + ((y * 28 + x) * (i + 7)) % 23; });
  folder.write("s.json", R"({"dataset": {"name": "own", "path": "data", "validation": 60},
        "network": {"layers": [
          {"name": "conv", "type": "conv2d", "out_channels": 4, "kernel_size": 5},
          {"name": "bn", "type": "batch_norm2d"}, {"name": "relu", "type": "relu"},
          {"name": "pool", "type": "max_pool2d", "kernel_size": 4}, {"name": "flatten", "type": "flatten"},
          {"name": "dropout", "type": "dropout", "p": 0.2},
          {"name": "out", "type": "linear", "out_features": 10}]},
        "batch_size": 100, "lr": 0.05, "device": ")" +
                             device + "\"}");
}

}  // namespace sweep::testing
