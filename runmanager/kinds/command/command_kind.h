// Runs that are a person's own program.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/kinds/run_kind.h"
#include "runmanager/records/lock_file.h"

namespace sweep {

/// A run's identity is its command, its parameters and the content of its inputs.
class CommandKind final : public RunKind {
 public:
  /// `program`: program_provenance(). `unavailable_reason`: why a device cannot be used here.
  CommandKind(nlohmann::ordered_json program,
              std::function<std::optional<std::string>(const Device&)> unavailable_reason);

  void load(const Sweep& sweep) override;
  std::vector<std::string> remarks() const override { return remarks_; }
  RunIdentity identity(const RunConfig& config) override;
  void check(const Sweep& sweep) override;
  void check(const RunConfig& config, const std::filesystem::path& sweep_file) override;
  RunNeeds needs(const RunConfig& config) override;
  nlohmann::ordered_json input_files(const RunConfig& config) override;
  GpuPool gpus(const Sweep& sweep) const override;
  bool needs_workers() const override { return true; }
  double stop_seconds(const RunConfig& config) const override;
  double timeout_seconds(const RunConfig& config) const override { return stop_seconds(config); }
  bool may_pause_late() const override { return true; }  // It is seen once it has reported the next one.
  std::optional<RunRecord> state_of(const std::filesystem::path& run) const override;
  std::optional<RunRecord> start_of(const std::filesystem::path& run) const override;
  void keep_start(const std::filesystem::path& parent, const std::filesystem::path& run) const override;

 private:
  nlohmann::ordered_json program_;
  const std::function<std::optional<std::string>(const Device&)> unavailable_reason_;
  const std::vector<std::string> gpus_;
  std::vector<std::string> remarks_;
  std::map<std::vector<std::string>, nlohmann::ordered_json> inputs_;  // by their patterns
  std::map<std::string, nlohmann::ordered_json> git_;                  // by working directory
};

/// Makes the directory `run` and locks it. Waits until a program that an earlier attempt has started is gone,
/// whose keeper holds the lock as well. Throws IoError, and RunTakenOver if another process has the run.
LockFile lock_program(const std::filesystem::path& run, const TrainerOptions& options);

/// Removes what another run has left in the locked directory, and keeps what this one has left. Returns the
/// record so far, with the epochs and the seconds of the starts before this one, or of the run that this one
/// continues, and with the state that the program is in now. Throws the same.
RunRecord take_over_files(const WorkerTask& task, const std::filesystem::path& run,
                          const TrainerOptions& options);

/// Its KindWorker: follows the program's metrics and output, and ends it when it has to. Everything that it
/// has started is gone when this returns.
TrainedRun run_program(const WorkerTask& task, const ReportEvent& report, const TrainerOptions& options);

}  // namespace sweep
