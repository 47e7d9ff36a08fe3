#include "runmanager/sweep/locked_runs.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {

std::chrono::steady_clock::time_point next_look(std::chrono::steady_clock::time_point begin) {
  constexpr std::chrono::milliseconds kRest(250);
  constexpr int kRestPerLook = 20;
  const auto end = std::chrono::steady_clock::now();
  return end + std::max<std::chrono::steady_clock::duration>(kRest, kRestPerLook * (end - begin));
}

LockedRuns::LockedRuns(std::deque<ScheduledRun>& runs, SweepRecorder& recorder, LockedRunsOptions options)
    : recorder_(recorder), options_(std::move(options)) {
  for (ScheduledRun& run : runs) open_.push_back({.run = &run});
}

std::filesystem::path LockedRuns::directory_of(const OpenRun& open) const {
  return recorder_.directory() / open.run->prepared.config->name;
}

std::vector<const ScheduledRun*> LockedRuns::take_ready() {
  std::vector<const ScheduledRun*> ready;
  while (active_ < options_.slots) {
    OpenRun* open = lock_next();
    if (open == nullptr) break;
    open->is_active = true;
    ++active_;
    ready.push_back(open->run);
  }
  return ready;
}

bool LockedRuns::may_have_more() const {
  return active_ < options_.slots && !options_.leaves && open_.size() > active_;
}

LockedRuns::OpenRun* LockedRuns::lock_next() {
  if (OpenRun* open = lock_from(next_)) return open;
  const Clock::time_point begin = Clock::now();
  if (begin < next_look_ && !options_.leaves) return nullptr;
  OpenRun* open = lock_from(0);
  next_look_ = next_look(begin);
  return open;
}

LockedRuns::OpenRun* LockedRuns::lock_from(std::size_t begin) {
  for (next_ = begin; next_ < open_.size();) {
    OpenRun& open = open_[next_];
    if (open.is_active || (options_.takes && !options_.takes(*open.run->prepared.config))) {
      ++next_;
      continue;
    }
    const Got got = lock(open);
    if (got == Got::kEnd) {
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(next_));
      continue;
    }
    ++next_;
    if (got == Got::kLock) return &open;
  }
  return nullptr;
}

LockedRuns::Got LockedRuns::lock(OpenRun& open) {
  std::optional<RunLock> lock = RunLock::try_lock(directory_of(open));
  if (!lock) return Got::kNothing;
  const std::size_t run = open.run->run;
  if (const std::optional<RunRecord> record = options_.finished(run, *lock)) {
    recorder_.keep_run(run, *record);
    return Got::kEnd;
  }
  open.run->lock = std::make_shared<RunLock>(*std::move(lock));
  return Got::kLock;
}

std::size_t LockedRuns::collect() {
  const std::size_t before = open_.size();
  std::erase_if(open_, [this](OpenRun& open) {
    if (open.is_active || !seems_ended(open) || lock(open) == Got::kNothing) return false;
    return std::exchange(open.run->lock, nullptr) == nullptr;
  });
  if (open_.size() != before) next_ = 0;
  return before - open_.size();
}

// Without a lock, which others would miss.
bool LockedRuns::seems_ended(const OpenRun& open) const {
  try {
    const RunStatus status = read_run_record(directory_of(open) / kRunRecordFile).status;
    if (status == RunStatus::kFailed) return failed_start_of(directory_of(open)) == options_.start;
    return status == RunStatus::kCompleted;
  } catch (const DataError&) {
    return false;
  }
}

bool LockedRuns::owns(std::size_t run) const {
  const auto open = find(run);
  return open != open_.end() && open->run->lock && sweep::owns(open->run->lock->owner());
}

void LockedRuns::end(std::size_t run) {
  const auto open = find(run);
  if (open == open_.end()) return;
  --active_;
  const RunStatus status = recorder_.record(run).status;
  const std::shared_ptr<RunLock> lock = std::exchange(open->run->lock, nullptr);
  if (status == RunStatus::kFailed) lock->note_failure(options_.start);
  const auto position = static_cast<std::size_t>(open - open_.begin());
  // Another process has a pending one; anybody may go on with one that was interrupted.
  if (status == RunStatus::kPending || status == RunStatus::kInterrupted) {
    open_[position].is_active = false;
    return;
  }
  open_.erase(open);
  if (position < next_) --next_;
}

std::vector<LockedRuns::OpenRun>::const_iterator LockedRuns::find(std::size_t run) const {
  const auto found =
      std::ranges::lower_bound(open_, run, {}, [](const OpenRun& open) { return open.run->run; });
  return found == open_.end() || found->run->run != run ? open_.end() : found;
}

}  // namespace sweep
