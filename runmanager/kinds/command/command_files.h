// The files that a worker keeps for a person's program: run.json and events for TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runmanager/kinds/run_kind.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/tensorboard/run_log.h"

namespace sweep {

/// How a run ends, as its record has it.
struct RunEnding {
  RunStatus status = RunStatus::kFailed;
  std::string error = {};  // why it is not complete
  std::string stop = {};   // why it is, if "stop" has ended it
};

/// Every call may throw IoError, and RunTakenOver if another process has taken the run over. Not thread-safe.
class CommandFiles {
 public:
  /// The events have steps up to it: TensorBoard's page of hyperparameters breaks at larger ones.
  static constexpr std::int64_t kMaxEventStep = (std::int64_t{1} << 31) - 1;

  /// Makes the run's directory, or takes it over: removes what another run has left there, and keeps what
  /// this one has left, except the events, which are written anew. Waits until a program that an earlier
  /// attempt has started is gone.
  CommandFiles(const WorkerTask& task, const TrainerOptions& options);

  /// The run's, absolute.
  const std::filesystem::path& directory() const { return directory_; }
  /// As recorded: before the first save(), with the epochs and the seconds of the starts before this one.
  const RunRecord& record() const { return record_; }

  void write_events(std::int64_t step, const EpochRecord& values);
  /// Replaces the events by new ones, which have no values yet.
  void open_events();

  /// Writes run.json of a run that goes on. `seconds`: of the run, here and below.
  void save(std::vector<EpochRecord> epochs, double seconds);
  /// Writes what is final, and returns the record.
  RunRecord end(std::vector<EpochRecord> epochs, double seconds, const RunEnding& ending);

 private:
  void begin_events_file(bool sorts_first);
  void write_record(std::vector<EpochRecord> epochs, double seconds);

  const RunConfig& config_;
  const TrainerOptions& options_;
  const std::filesystem::path directory_;
  RunRecord record_;
  LockFile lock_;  // the program's keeper also holds it until all has ended
  std::unique_ptr<RunLog> events_;
};

}  // namespace sweep
