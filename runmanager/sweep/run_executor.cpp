#include "runmanager/sweep/run_executor.h"

#include <thread>
#include <utility>

#include "runmanager/sweep/event_messages.h"

namespace sweep {

InProcessExecutor::InProcessExecutor(KindWorker worker, TrainerOptions options,
                                     std::function<bool(const Device&)> is_lost)
    : worker_(std::move(worker)), options_(std::move(options)), is_lost_(std::move(is_lost)) {
  options_.threads = [this] { return threads_; };
}

void InProcessExecutor::start(std::size_t, const ScheduledRun& run, const RunRecord& record, int threads) {
  task_ = WorkerTask{
      .config = *run.config, .record = record, .dataset = run.needs.dataset, .until_epoch = run.until_epoch};
  options_.owner.reset();
  if (run.lock) options_.owner.emplace(run.lock->owner());
  threads_ = threads;
  device_ = run.needs.device;
}

void InProcessExecutor::wait(std::chrono::milliseconds timeout) {
  if (!task_) std::this_thread::sleep_for(timeout);
}

void InProcessExecutor::deliver(std::size_t, const ReportEvent& report) {
  if (!task_) return;
  const WorkerTask task = *std::exchange(task_, std::nullopt);
  RunEvent end;
  try {
    end = worker_(task, report, options_);
  } catch (const std::exception& error) {
    end = event_of(error);
  }
  report(end);
  const auto* trained = std::get_if<TrainedRun>(&end);
  if (trained != nullptr && trained->failure == RunFailure::kDevice && is_lost_(device_))
    throw DeviceError(device_.name() + " failed in run \"" + task.config.name +
                      "\", and this process cannot use it any more; the same command resumes the sweep");
}

}  // namespace sweep
