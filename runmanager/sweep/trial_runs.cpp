#include "runmanager/sweep/trial_runs.h"

#include <fmt/format.h>

#include <utility>

#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

int epochs_of(const Sweep& sweep) { return sweep.runs.empty() ? 1 : sweep.runs.front().epochs; }

}  // namespace

TrialRuns::TrialRuns(const Sweep& sweep, std::deque<ScheduledRun>& runs, const SweepRecorder& recorder,
                     TrialRunsOptions options)
    : sweep_(sweep),
      search_(*sweep.search),
      runs_(runs),
      recorder_(recorder),
      options_(std::move(options)),
      schedule_(search_, sweep.runs.size(), epochs_of(sweep)) {
  for (ScheduledRun& run : runs_) waiting_[run.run] = &run;
  if (search_.method != SearchMethod::kTpe) return;
  sampler_ = make_tpe_sampler(sweep.trials->domain, search_.seed);
  points_ = sweep.trials->points;
}

std::vector<TrialResult> TrialRuns::results() const {
  std::vector<TrialResult> results;
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i)
    results.push_back(trial_result(recorder_.record(i), search_, keeps_best(sweep_.runs[i])));
  return results;
}

bool TrialRuns::has_time() const {
  if (!search_.seconds) return true;
  double spent = 0;
  for (const RunRecord& run : recorder_.records()) {
    const EpochRecord* last = last_epoch(run);
    spent += run.run_seconds.value_or(last != nullptr ? last->run_seconds : 0);
  }
  return spent < *search_.seconds;
}

std::vector<const ScheduledRun*> TrialRuns::take_ready() {
  std::vector<TrialResult> results = this->results();
  while (add_trial(results)) results = this->results();
  const std::vector<TrialDecision> decisions = schedule_.decide(results);
  std::vector<const ScheduledRun*> ready;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const TrialDecision& decision = decisions[i];
    if (active_.contains(i)) continue;
    if (decision.fate == TrialFate::kPruned && pruned_.insert(i).second &&
        recorder_.record(i).status != RunStatus::kPruned)
      options_.prune(i, decision.reason);
    const auto run = waiting_.find(i);
    if (decision.fate != TrialFate::kTrains || run == waiting_.end() || !has_time()) continue;
    PreparedRun& prepared = run->second->prepared;
    prepared.until_epoch = decision.until_epoch < prepared.config->epochs ? decision.until_epoch : 0;
    active_.insert(i);
    ready.push_back(run->second);
  }
  return ready;
}

bool TrialRuns::add_trial(const std::vector<TrialResult>& results) {
  const std::size_t trial = results.size();
  if (!sampler_ || is_exhausted_ || trial >= search_.trials || !has_time() ||
      !schedule_.may_begin(trial, results))
    return false;
  std::vector<Observation> earlier;
  for (std::size_t i = 0; i < trial; ++i) {
    Observation observation{.point = points_[i]};
    if (i < schedule_.known(trial)) {
      observation.value = final_value(results[i]);
      observation.failed = !observation.value;
    }
    earlier.push_back(std::move(observation));
  }
  std::optional<SearchPoint> point = sampler_->suggest(trial, earlier);
  is_exhausted_ = !point;
  if (!point) return false;
  std::optional<ScheduledRun> run = options_.add(sweep_.trials->make_run(trial, *point));
  points_.push_back(*std::move(point));
  if (run) waiting_[trial] = &runs_.emplace_back(*std::move(run));
  return true;
}

SearchEnd TrialRuns::outcome() const {
  const std::vector<TrialResult> results = this->results();
  SearchEnd end{.reason = "", .winner = schedule_.winner(results)};
  if (end.winner) {
    end.reason = fmt::format("{} of {} is reached", search_.metric, *search_.target);
  } else if (!has_time()) {
    end.reason = fmt::format("trials have taken the {} that they may", human_seconds(*search_.seconds));
  } else if (is_exhausted_) {
    end.reason = fmt::format("there is no further point after {} trials", results.size());
  }
  return end;
}

}  // namespace sweep
