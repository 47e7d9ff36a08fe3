#include "runmanager/sweep/trial_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "runmanager/config/metrics.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/training/epoch_watch.h"

namespace sweep {
namespace {

std::optional<double> value_of(const EpochRecord& epoch, const Goal& goal) {
  const std::optional<double> value = epoch[*goal.metric];
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return goal.cost(*value);
}

bool has_epoch(const TrialResult& trial, int epoch) {
  return trial.values.size() >= static_cast<std::size_t>(epoch);
}

}  // namespace

TrialResult trial_result(const RunRecord& run, const SearchSpec& search, const RunConfig& config) {
  TrialResult trial;
  const auto has_validation = [](const EpochRecord& epoch) { return epoch["validation_loss"].has_value(); };
  std::optional<EpochWatch> best;
  if (keeps_best(config)) best = make_epoch_watch(config, std::ranges::any_of(run.epochs, has_validation));
  std::optional<double> value, counted;
  std::span<const EpochRecord> epochs = run.epochs;
  // While it runs, the metric of the last one may be still to come.
  if (run.status == RunStatus::kRunning && !epochs.empty() && !epochs.back()[*search.goals[0].metric])
    epochs = epochs.first(epochs.size() - 1);
  for (const EpochRecord& epoch : epochs) {
    // Until it is measured again, the last value counts.
    if (epoch[*search.goals[0].metric]) value = value_of(epoch, search.goals[0]);
    if (!best || best->add(epoch)) counted = value;
    trial.values.push_back(counted);
  }
  trial.failed = run.status == RunStatus::kFailed || run.status == RunStatus::kSkipped;
  trial.ended = trial.failed || run.status == RunStatus::kCompleted;
  if (search.goals.size() > 1) trial.values.assign(1, std::nullopt);
  if (run.status != RunStatus::kCompleted || trial.values.empty()) return trial;
  // A whole run is judged as in tables, where a time is a median.
  const std::optional<GoalValues> judged = goal_values(run, search.goals);
  trial.values.back() = judged ? std::optional(judged->front()) : std::nullopt;
  if (judged) trial.others.assign(judged->begin() + 1, judged->end());
  return trial;
}

int reached_epoch(const RunRecord& run) {
  const Lineage lineage = lineage_of(run.config);
  return std::max(lineage.empty() ? 0 : lineage.back().until, static_cast<int>(run.epochs.size()));
}

std::optional<double> final_value(const TrialResult& trial) {
  return trial.failed || trial.values.empty() ? std::nullopt : trial.values.back();
}

TrialSchedule::TrialSchedule(const SearchSpec& search, std::size_t trials, int epochs)
    : search_(search),
      epochs_(epochs),
      brackets_(search_brackets(search, chooses_points(search) ? search.trials : trials, epochs)) {
  for (const Halving& bracket : brackets_) total_epochs_ += static_cast<double>(bracket.total_epochs());
  if (search.method == SearchMethod::kAsha) {
    const std::size_t all = std::max(trials, search.trials);
    const Halving deepest(std::numeric_limits<std::size_t>::max(), search.min_epochs, epochs,
                          search.reduction);
    std::vector<int> rungs;
    for (const Rung& rung : deepest.rungs()) rungs.push_back(rung.epochs);
    asha_ = Asha{.epochs = std::move(rungs),
                 .eta = static_cast<std::size_t>(search.reduction),
                 .at_once = search.at_once};
    total_epochs_ = static_cast<double>(
        Halving(std::max<std::size_t>(all, 1), search.min_epochs, epochs, search.reduction).total_epochs());
  } else if (search.method == SearchMethod::kPopulation) {
    population_ = population_of(search, std::min(trials, search.trials), epochs);
    total_epochs_ = static_cast<double>(population_->members) * static_cast<double>(epochs);
  } else if (brackets_.empty())
    total_epochs_ = static_cast<double>(std::max(trials, search.trials)) * static_cast<double>(epochs);
}

bool TrialSchedule::reaches_target(const std::optional<double>& value) const {
  if (!value || !search_.target) return false;
  return *value <= search_.goals[0].cost(*search_.target);
}

std::optional<std::size_t> TrialSchedule::winner(std::span<const TrialResult> trials) const {
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].ended && reaches_target(final_value(trials[i]))) return i;
  }
  return std::nullopt;
}

std::optional<double> TrialSchedule::value_at(const TrialResult& trial, int epoch) const {
  if (!has_epoch(trial, epoch) || (trial.ended && epoch >= epochs_)) return final_value(trial);
  return trial.values[static_cast<std::size_t>(epoch) - 1];
}

std::size_t TrialSchedule::first_unknown(std::size_t trial) const {
  return trial < search_.at_once ? 0 : trial - search_.at_once + 1;
}

std::size_t TrialSchedule::may_begin(std::span<const TrialResult> trials) const {
  if (search_.method != SearchMethod::kTpe && !search_.target) return std::numeric_limits<std::size_t>::max();
  const auto first = std::ranges::find_if(trials, [this](const TrialResult& trial) {
    return !trial.ended || reaches_target(final_value(trial));
  });
  return static_cast<std::size_t>(first - trials.begin()) + search_.at_once;
}

bool TrialSchedule::pauses_at(const TrialResult& trial, int epoch) const {
  return has_epoch(trial, epoch) && epoch < epochs_;
}

SearchState TrialSchedule::play(std::span<const TrialResult> trials, bool more) const {
  const auto result = [&](std::size_t i, int epoch) -> KnownResult {
    if (!trials[i].ended && !pauses_at(trials[i], epoch)) return {};
    // One that has ended before has no state of this epoch that could be copied.
    if (population_ && !has_epoch(trials[i], epoch)) return {.is_known = true};
    return {.is_known = true, .value = value_at(trials[i], epoch)};
  };
  const auto reaches = [this](double value) { return reaches_target(value); };
  if (asha_) return asha_->play(trials.size(), more, result, reaches);
  if (population_) return population_->play(trials.size(), result, reaches);
  SearchState state(trials.size());
  for (const Halving& bracket : brackets_) bracket.play(state, more, result, reaches);
  if (brackets_.empty())
    std::fill_n(state.until.begin(), std::min(trials.size(), may_begin(trials)), epochs_);
  return state;
}

std::vector<TrialDecision> TrialSchedule::decide(std::span<const TrialResult> trials, bool more) const {
  SearchState state = play(trials, more);
  std::vector<TrialDecision> decisions(trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const int until = decisions[i].until_epoch = state.until[i];
    decisions[i].reason = std::move(state.ended[i]);
    if (trials[i].ended)
      decisions[i].fate = TrialFate::kEnded;
    else if (!decisions[i].reason.empty())
      decisions[i].fate = TrialFate::kPruned;
    else if (until > 0 && !pauses_at(trials[i], until))
      decisions[i].fate = TrialFate::kTrains;
  }
  return decisions;
}

std::optional<PopulationCopy> TrialSchedule::next_copy(std::span<const TrialResult> trials) const {
  const SearchState state = play(trials, false);
  const std::size_t next = trials.size() - population_->members;
  return next < state.copies.size() ? std::optional(state.copies[next]) : std::nullopt;
}

// Until which epoch each trial is known when the next one is chosen.
std::optional<std::vector<int>> TrialSchedule::known_epochs(std::span<const TrialResult> trials) const {
  const std::size_t next = trials.size();
  std::vector<int> known(next);
  if (asha_) {
    const SearchState state = play(trials, true);
    return state.wants_trial ? std::optional(state.used) : std::nullopt;
  }
  if (brackets_.empty()) {
    if (next >= may_begin(trials)) return std::nullopt;
    std::fill_n(known.begin(), first_unknown(next), epochs_);
    return known;
  }
  const auto own =
      std::ranges::find_if(brackets_, [&](const Halving& bracket) { return next < bracket.end_trial(); });
  if (own == brackets_.end()) return std::nullopt;
  // Brackets before it have to be through.
  const std::vector<TrialDecision> decisions = decide(trials.first(own->first_trial()));
  for (std::size_t i = 0; i < own->first_trial(); ++i) {
    if (decisions[i].fate != TrialFate::kEnded && decisions[i].fate != TrialFate::kPruned)
      return std::nullopt;
    known[i] = decisions[i].until_epoch;
  }
  const int until = own->rungs()[0].epochs;
  for (std::size_t i = own->first_trial(); i < first_unknown(next); ++i) {
    if (!trials[i].ended && !pauses_at(trials[i], until)) return std::nullopt;
    known[i] = until;
  }
  return known;
}

std::optional<std::vector<KnownResult>> TrialSchedule::known_to_next(
    std::span<const TrialResult> trials) const {
  const std::optional<std::vector<int>> known = known_epochs(trials);
  if (!known) return std::nullopt;
  std::set<int> rungs;
  if (asha_) rungs.insert(asha_->epochs.begin(), asha_->epochs.end());
  for (const Halving& bracket : brackets_)
    for (const Rung& rung : bracket.rungs()) rungs.insert(rung.epochs);
  if (rungs.empty()) rungs = {epochs_};
  std::vector<KnownResult> results(trials.size());
  for (auto rung = rungs.rbegin(); rung != rungs.rend(); ++rung) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      results[i] = {};
      if ((*known)[i] == 0) continue;
      // What has failed by then is known to be bad at every rung.
      const std::optional<double> value = value_at(trials[i], std::min(*rung, (*known)[i]));
      if (value && (*known)[i] < *rung) continue;
      results[i] = {.is_known = true, .value = value};
      count += value.has_value();
    }
    if (count >= kTpeStartTrials) break;
  }
  return results;
}

std::size_t all_trials(const Sweep& sweep) {
  const SearchSpec& search = *sweep.search;
  const std::size_t total = std::max(sweep.runs.size(), total_trials(search, sweep.runs.front().epochs));
  if (!chooses_points(search) || !is_enumerable(sweep.trials->domain)) return total;
  return std::min(total, all_points(sweep.trials->domain).size());
}

std::size_t open_trials(const Sweep& sweep, std::span<const RunRecord> records, bool tries_failed) {
  const SearchSpec& search = *sweep.search;
  int last_generation = 0;  // after which copies were made; who failed before is not tried again
  for (const RunRecord& record : records) {
    if (const Lineage lineage = lineage_of(record.config); !lineage.empty())
      last_generation = std::max(last_generation, lineage.back().until);
  }
  std::vector<TrialResult> results;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RunConfig& config = sweep.runs[std::min(i, sweep.runs.size() - 1)];
    results.push_back(trial_result(records[i], search, config));
    if (tries_failed && records[i].status == RunStatus::kFailed &&
        reached_epoch(records[i]) >= last_generation)
      results[i].ended = results[i].failed = false;
  }
  const int epochs = sweep.runs.front().epochs;
  const TrialSchedule schedule(search, sweep.runs.size(), epochs);
  const bool has_more = adds_trials(search) && results.size() < all_trials(sweep);
  const std::vector<TrialDecision> decisions = schedule.decide(results, has_more);
  const auto open =
      static_cast<std::size_t>(std::ranges::count(decisions, TrialFate::kTrains, &TrialDecision::fate));
  if (open > 0 || !has_more) return open;
  if (!chooses_points(search)) return schedule.next_copy(results) ? 1 : 0;
  return schedule.known_to_next(results) ? 1 : 0;
}

}  // namespace sweep
