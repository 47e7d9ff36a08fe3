#include "runmanager/sweep/run_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

using Clock = std::chrono::steady_clock;

std::string no_point_after(std::size_t trials) {
  return fmt::format("there is no further point after {}", counted(trials, "trial"));
}

int epochs_of(const Sweep& sweep) { return sweep.runs.empty() ? 1 : sweep.runs.front().epochs; }

// When to look again at what others do: later if a look takes long.
Clock::time_point next_look(Clock::time_point begin) {
  constexpr std::chrono::milliseconds kRest(250);
  constexpr int kRestPerLook = 20;
  const Clock::time_point end = Clock::now();
  return end + std::max<Clock::duration>(kRest, kRestPerLook * (end - begin));
}

}  // namespace

TrialRuns::TrialRuns(const Sweep& sweep, std::deque<ScheduledRun>& runs, const SweepRecorder& recorder,
                     TrialRunsOptions options)
    : sweep_(sweep),
      search_(*sweep.search),
      runs_(runs),
      recorder_(recorder),
      options_(std::move(options)),
      schedule_(search_, sweep.runs.size(), epochs_of(sweep)),
      total_(total_trials(search_, epochs_of(sweep))) {
  if (!adds_trials(search_)) return;
  if (chooses_points(search_)) sampler_.emplace(make_sampler(search_, sweep.trials->domain));
  for (const SearchPoint& point : sweep.trials->points) observations_.push_back({.point = point});
}

void TrialRuns::read_results() {
  results_.resize(sweep_.runs.size());
  readings_.resize(sweep_.runs.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const RunRecord& record = recorder_.record(i);
    const bool is_active = active_.contains(i);
    std::optional<Reading> reading;
    if (!is_active && record.status != RunStatus::kRunning)
      reading.emplace(record.status, record.epochs.size());
    if (!reading || reading != readings_[i]) results_[i] = trial_result(record, search_, sweep_.runs[i]);
    readings_[i] = reading;
    // A failed one that is tried again has not ended yet, whatever its record says.
    if (is_active) results_[i].ended = results_[i].failed = false;
  }
}

bool TrialRuns::has_time() const {
  if (!search_.seconds) return true;
  double spent = 0;
  for (const RunRecord& run : recorder_.records()) spent += own_seconds(run);
  return spent < *search_.seconds;
}

std::vector<const ScheduledRun*> TrialRuns::take_ready() {
  do {
    read_results();
  } while (add_trial());
  const std::vector<TrialDecision> decisions = schedule_.decide(results_, has_more());
  std::vector<const ScheduledRun*> ready;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const TrialDecision& decision = decisions[i];
    if (active_.contains(i)) continue;
    if (decision.fate == TrialFate::kPruned && recorder_.record(i).status != RunStatus::kPruned)
      options_.prune(i, decision.reason);
    if (decision.fate != TrialFate::kTrains) continue;
    ScheduledRun* const run = find_run(runs_, i);
    if (run == nullptr || !has_time()) continue;
    run->until_epoch = decision.until_epoch < run->config->epochs ? decision.until_epoch : 0;
    active_.insert(i);
    ready.push_back(run);
  }
  return ready;
}

bool TrialRuns::add_trial() {
  const std::size_t trial = results_.size();
  if (!has_more()) return false;
  if (!sampler_) return add_copy();
  const std::optional<std::vector<KnownResult>> known = schedule_.known_to_next(results_);
  if (!known) return false;
  for (std::size_t i = 0; i < trial; ++i) {
    observations_[i].value = (*known)[i].value;
    observations_[i].failed = (*known)[i].is_known && !(*known)[i].value;
    if ((*known)[i].value) observations_[i].others = results_[i].others;
  }
  std::optional<SearchPoint> point = sampler_->suggest(trial, std::span(observations_).first(trial));
  is_exhausted_ = !point;
  if (!point) return false;
  RunConfig config = sweep_.trials->make_run(trial, *point);
  if (!may_add(config)) return false;
  add(std::move(config), *std::move(point));
  return true;
}

bool TrialRuns::add_copy() {
  const std::size_t trial = results_.size();
  const std::optional<PopulationCopy> copy = schedule_.next_copy(results_);
  if (!copy || active_.contains(copy->parent)) return false;
  UnitRandom random(search_.seed, trial, SearchDraw::kCopy);
  SearchPoint point = explored_point(sweep_.trials->domain, observations_[copy->parent].point, random);
  RunConfig config = sweep_.trials->make_run(trial, point);
  const RunConfig& parent = sweep_.runs[copy->parent];
  Lineage lineage = lineage_of(parent.resolved);
  lineage.push_back({.run = parent.name, .until = copy->epoch, .params = parent.params});
  config.resolved[kLineageKey] = to_json(lineage);
  if (!may_add(config)) return false;
  if (!options_.keep_start(copy->parent, copy->epoch, config)) {
    read_results();
    return false;
  }
  add(std::move(config), std::move(point));
  return true;
}

void TrialRuns::add(RunConfig config, SearchPoint point) {
  std::optional<ScheduledRun> run = options_.add(std::move(config));
  observations_.push_back({.point = std::move(point)});
  if (run) runs_.push_back(*std::move(run));
}

SearchEnd TrialRuns::outcome() {
  read_results();
  SearchEnd end{.reason = "", .winner = schedule_.winner(results_)};
  const bool may_go_on = has_more() || std::ranges::any_of(recorder_.records(), [](const RunRecord& run) {
                           return !has_ended(run.status);
                         });
  if (end.winner) {
    end.reason = fmt::format("{} of {} is reached", search_.goals[0].asked, *search_.target);
  } else if (may_go_on && !has_time()) {
    end.reason = fmt::format("trials have taken the {} that they may", human_seconds(*search_.seconds));
  } else if (is_exhausted_) {
    end.reason = no_point_after(results_.size());
  } else if (!adds_trials(search_) && sweep_.trials && sweep_.trials->points.size() < total_) {
    end.reason = no_point_after(sweep_.trials->points.size());
  }
  return end;
}

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
