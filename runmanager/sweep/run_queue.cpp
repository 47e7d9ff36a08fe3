#include "runmanager/sweep/run_queue.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

using Clock = std::chrono::steady_clock;

// When to look again at what others do: later if a look takes long.
Clock::time_point next_look(Clock::time_point begin) {
  constexpr std::chrono::milliseconds kRest(250);
  constexpr int kRestPerLook = 20;
  const Clock::time_point end = Clock::now();
  return end + std::max<Clock::duration>(kRest, kRestPerLook * (end - begin));
}

}  // namespace

std::vector<const ScheduledRun*> RunQueue::take_ready() {
  if (!sharing_ && trials_ != nullptr) return trials_->take_ready();
  std::vector<const ScheduledRun*> ready;
  if (!sharing_) {
    if (!std::exchange(has_begun_, true))
      for (const ScheduledRun& run : runs_) ready.push_back(&run);
    return ready;
  }
  for (bool has_looked = false; active_ < sharing_->slots;) {
    if (candidates_.empty() && (std::exchange(has_looked, true) || !look())) break;
    if (candidates_.empty()) break;
    ScheduledRun& run = *find_run(runs_, candidates_.front());
    candidates_.pop_front();
    const bool is_mine = lock(run);
    if (candidates_.empty()) next_look_ = next_look(look_begin_);
    if (is_mine) {
      ++active_;
      ready.push_back(&run);
    } else if (trials_ != nullptr) {
      trials_->end(run.run);
      others_may_end_ = true;
    }
  }
  // The next results may choose others.
  if (trials_ != nullptr && !candidates_.empty()) {
    for (const std::size_t run : std::exchange(candidates_, {})) trials_->end(run);
    others_may_end_ = true;
  }
  return ready;
}

// Finds out what can be trained now. Returns false if it is too early for that.
bool RunQueue::look() {
  look_begin_ = Clock::now();
  const bool looks_later = trials_ != nullptr || !sharing_->leaves;
  if (looks_later && look_begin_ < next_look_) return false;
  if (trials_ != nullptr) {
    collect();
    others_may_end_ = false;
    for (const ScheduledRun* run : trials_->take_ready()) candidates_.push_back(run->run);
  } else {
    for (const ScheduledRun& run : runs_) {
      if (run.lock || is_over(recorder_.record(run.run).status)) continue;
      if (!sharing_->takes || sharing_->takes(*run.config)) candidates_.push_back(run.run);
    }
  }
  next_look_ = next_look(look_begin_);
  return true;
}

// Another process may have trained it since its record was read.
bool RunQueue::lock(ScheduledRun& run) {
  std::optional<RunLock> lock = RunLock::try_lock(recorder_.directory() / recorder_.record(run.run).name);
  if (!lock) return false;
  sharing_->fate(run.run);
  collect(run.run);
  const RunRecord& record = recorder_.record(run.run);
  const int until = run.until_epoch;
  if (is_over(record.status) || (until > 0 && record.epochs.size() >= static_cast<std::size_t>(until)))
    return false;
  run.lock = std::make_shared<RunLock>(*std::move(lock));
  return true;
}

bool RunQueue::may_have_more() const {
  if (!sharing_) return false;
  if (active_ >= sharing_->slots) return false;
  if (trials_ != nullptr) return others_may_end_;
  return !sharing_->leaves && std::ranges::any_of(runs_, [this](const ScheduledRun& run) {
    return !run.lock && !is_over(recorder_.record(run.run).status);
  });
}

bool RunQueue::has_open() const {
  return std::ranges::any_of(
      runs_, [this](const ScheduledRun& run) { return !is_over(recorder_.record(run.run).status); });
}

bool RunQueue::owns(std::size_t run) const {
  if (!sharing_) return true;
  const ScheduledRun* scheduled = find_run(runs_, run);
  return scheduled != nullptr && scheduled->lock && sweep::owns(scheduled->lock->owner());
}

void RunQueue::end(std::size_t run) {
  if (trials_ != nullptr) trials_->end(run);
  if (!sharing_) return;
  const std::shared_ptr<RunLock> lock = std::exchange(find_run(runs_, run)->lock, nullptr);
  if (recorder_.record(run).status == RunStatus::kFailed) lock->note_failure(sharing_->start);
  --active_;
  if (trials_ != nullptr) next_look_ = {};  // Its results decide about others.
}

std::size_t RunQueue::collect() {
  std::size_t ended = 0;
  for (std::size_t run = 0; sharing_ && run < recorder_.records().size(); ++run)
    ended += collect(run) ? 1 : 0;
  return ended;
}

bool RunQueue::collect(std::size_t run) {
  const RunRecord& known = recorder_.record(run);
  if (const ScheduledRun* scheduled = find_run(runs_, run);
      is_over(known.status) || (scheduled != nullptr && scheduled->lock))
    return false;
  const std::filesystem::path directory = recorder_.directory() / known.name;
  RunRecord record;
  try {
    record = read_run_record(directory / kRunRecordFile);
  } catch (const DataError&) {
    return false;  // Not there yet, or what a power cut has left of it.
  }
  // Another process may have the device that one that skipped a run had not.
  if (record.status == RunStatus::kSkipped && trials_ == nullptr) return false;
  // The process that trains it may try again, and so does a later start.
  const bool has_end = record.status == RunStatus::kFailed || record.status == RunStatus::kCompleted;
  if (has_end && sharing_->fate(run) != RunFate::kKept) record.status = RunStatus::kInterrupted;
  if (is_over(record.status)) {
    recorder_.keep_run(run, std::move(record));
    return true;
  }
  record.name = known.name;
  record.config = known.config;  // It may have more epochs now.
  if (trials_ != nullptr) recorder_.update(run, std::move(record));
  return false;
}

}  // namespace sweep
