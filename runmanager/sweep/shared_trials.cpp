#include "runmanager/sweep/shared_trials.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/locked_runs.h"

namespace sweep {
namespace {

bool is_over(RunStatus status) {
  return status == RunStatus::kCompleted || status == RunStatus::kFailed || status == RunStatus::kSkipped;
}

}  // namespace

SharedTrials::SharedTrials(TrialRuns& trials, std::deque<ScheduledRun>& runs, SweepRecorder& recorder,
                           SharedTrialsOptions options)
    : trials_(trials), runs_(runs), recorder_(recorder), options_(std::move(options)) {}

std::vector<const ScheduledRun*> SharedTrials::take_ready() {
  const Clock::time_point begin = Clock::now();
  if (begin < next_look_) return {};
  collect();
  std::vector<const ScheduledRun*> ready;
  others_may_end_ = false;
  for (const ScheduledRun* run : trials_.take_ready()) {
    if (active_ < options_.slots && lock(*run)) {
      ++active_;
      ready.push_back(run);
    } else {
      trials_.end(run->run);
      others_may_end_ = true;
    }
  }
  next_look_ = next_look(begin);
  return ready;
}

bool SharedTrials::may_have_more() const { return others_may_end_ && active_ < options_.slots; }

// Another process may have trained it since its record was read.
bool SharedTrials::lock(const ScheduledRun& run) {
  std::optional<RunLock> lock = RunLock::try_lock(recorder_.directory() / recorder_.record(run.run).name);
  if (!lock) return false;
  collect(run.run);
  const RunRecord& record = recorder_.record(run.run);
  const int until = run.prepared.until_epoch;
  if (is_over(record.status) || (until > 0 && record.epochs.size() >= static_cast<std::size_t>(until)))
    return false;
  find(run.run)->lock = std::make_shared<RunLock>(*std::move(lock));
  return true;
}

ScheduledRun* SharedTrials::find(std::size_t run) const {
  const auto found = std::ranges::find(runs_, run, &ScheduledRun::run);
  return found == runs_.end() ? nullptr : &*found;
}

bool SharedTrials::owns(std::size_t run) const {
  const ScheduledRun* scheduled = find(run);
  return scheduled != nullptr && scheduled->lock && sweep::owns(scheduled->lock->owner());
}

void SharedTrials::end(std::size_t run) {
  trials_.end(run);
  const std::shared_ptr<RunLock> lock = std::exchange(find(run)->lock, nullptr);
  if (recorder_.record(run).status == RunStatus::kFailed) lock->note_failure(options_.start);
  --active_;
  next_look_ = {};
}

void SharedTrials::collect() {
  for (std::size_t run = 0; run < recorder_.records().size(); ++run) collect(run);
}

void SharedTrials::collect(std::size_t run) {
  const RunRecord& known = recorder_.record(run);
  if (const ScheduledRun* scheduled = find(run);
      is_over(known.status) || (scheduled != nullptr && scheduled->lock))
    return;
  const std::filesystem::path directory = recorder_.directory() / known.name;
  RunRecord record;
  try {
    record = read_run_record(directory / kRunRecordFile);
  } catch (const DataError&) {
    return;  // Not there yet, or what a power cut has left of it.
  }
  // The process that trains it may try again, and so does a later start.
  const bool tries_again =
      record.status == RunStatus::kFailed && failed_start_of(directory) != options_.start;
  if (tries_again || (record.status == RunStatus::kCompleted && !options_.is_whole(run)))
    record.status = RunStatus::kInterrupted;
  if (is_over(record.status)) return recorder_.keep_run(run, std::move(record));
  record.name = known.name;
  recorder_.update(run, std::move(record));
}

void SharedTrials::add_known() {
  collect();
  for (const ScheduledRun* run : trials_.take_ready()) trials_.end(run->run);
}

}  // namespace sweep
