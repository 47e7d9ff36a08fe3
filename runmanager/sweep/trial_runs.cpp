#include "runmanager/sweep/trial_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

std::string no_point_after(std::size_t trials) {
  return fmt::format("there is no further point after {}", counted(trials, "trial"));
}

int epochs_of(const Sweep& sweep) { return sweep.runs.empty() ? 1 : sweep.runs.front().epochs; }

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

}  // namespace sweep
