#include "runmanager/sweep/in_process_executor.h"

#include <new>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace sweep {

InProcessExecutor::InProcessExecutor(TrainerOptions options) : options_(std::move(options)) {
  options_.threads = [this] { return threads_; };
  options_.image_grids = &image_grids_;
}

void InProcessExecutor::start(std::size_t, const ScheduledRun& run, const RunRecord& record, int threads) {
  run_ = run.prepared;
  options_.owner.reset();
  if (run.lock) options_.owner.emplace(run.lock->owner());
  run_->provenance = record.provenance;
  run_->jobs = record.jobs;
  threads_ = threads;
}

void InProcessExecutor::set_threads(std::size_t, int threads) { threads_ = threads; }

void InProcessExecutor::request_stop(std::size_t, int) {}

void InProcessExecutor::kill(std::size_t) { is_killed_ = true; }

void InProcessExecutor::wait(std::chrono::milliseconds timeout) {
  if (!run_) std::this_thread::sleep_for(timeout);
}

void InProcessExecutor::deliver(std::size_t, const ReportEvent& report) {
  if (!run_) return;
  const PreparedRun run = *std::exchange(run_, std::nullopt);
  if (std::exchange(is_killed_, false)) return report(LostRun{"ended before it began"});
  RunEvent end;
  try {
    end = train_run(run, report, options_);
  } catch (const IoError& error) {
    end = UnwritableRun{error.what()};
  } catch (const std::bad_alloc&) {
    end = LostRun{"out of memory"};
  } catch (const std::exception& error) {
    end = LostRun{error.what()};
  }
  report(end);
}

}  // namespace sweep
