// Trains runs in worker processes: one per slot, kept for many runs, replaced when it is lost.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "proto/worker.pb.h"
#include "runmanager/kinds/shared_dataset.h"
#include "runmanager/sweep/run_executor.h"
#include "runmanager/sweep/worker_process.h"

namespace sweep {

/// Starts the worker of a slot with the slot's first run. A worker that crashed, failed or was killed is
/// replaced with the next run. All workers end with the pool.
class WorkerPool final : public RunExecutor {
 public:
  /// `directory`: the sweep's. `datasets` must outlive the pool; the workers inherit their memory.
  WorkerPool(WorkerCommand command, std::filesystem::path directory,
             const std::vector<SharedDataset>& datasets, std::size_t slots);

  void start(std::size_t slot, const ScheduledRun& run, const RunRecord& record, int threads) override;
  void set_threads(std::size_t slot, int threads) override;
  void request_stop(std::size_t slot, int signal) override;
  void kill(std::size_t slot) override;
  void wait(std::chrono::milliseconds timeout) override;
  void deliver(std::size_t slot, const ReportEvent& report) override;

 private:
  struct Slot {
    std::unique_ptr<WorkerProcess> worker;  // empty before the first run, and after a lost one
    const ScheduledRun* run = nullptr;      // nullptr: idle
    bool is_killed = false;                 // the worker
  };

  proto::ToWorker setup_message() const;
  // The next event, if it has come. A worker that is lost, or says what cannot be read, is gone then.
  static std::optional<RunEvent> next_event(Slot& slot);

  WorkerCommand command_;
  std::filesystem::path directory_;
  const std::vector<SharedDataset>& datasets_;
  std::vector<Slot> slots_;
};

}  // namespace sweep
