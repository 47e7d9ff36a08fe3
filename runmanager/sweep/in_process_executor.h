// Trains runs in the calling process, one at a time: for users of the library without a worker program. A run
// that crashes or hangs takes the sweep with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/engine/device.h"
#include "runmanager/sweep/run_executor.h"

namespace sweep {

/// Has one slot. deliver() trains the whole run, so timeouts and request_stop() have no effect: training asks
/// TrainerOptions::stop_requested itself.
class InProcessExecutor final : public RunExecutor {
 public:
  /// `options`: `threads` are set here. `is_lost`: as sweep::is_lost().
  InProcessExecutor(KindWorker worker, TrainerOptions options,
                    std::function<bool(const Device&)> is_lost = sweep::is_lost);

  void start(std::size_t slot, const ScheduledRun& run, const RunRecord& record, int threads) override;
  void set_threads(std::size_t slot, int threads) override;
  void request_stop(std::size_t slot, int signal) override;
  void kill(std::size_t slot) override;
  void wait(std::chrono::milliseconds timeout) override;
  /// Throws DeviceError after a run whose device this process cannot use any more: no other run could.
  void deliver(std::size_t slot, const ReportEvent& report) override;

 private:
  const KindWorker worker_;
  TrainerOptions options_;
  const std::function<bool(const Device&)> is_lost_;
  Device device_;                   // of the run
  std::optional<WorkerTask> task_;  // started, not yet trained
  bool is_killed_ = false;
  int threads_ = 0;
};

}  // namespace sweep
