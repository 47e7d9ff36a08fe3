#include "runmanager/sweep/trial_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runmanager/config/metrics.h"

namespace sweep {
namespace {

std::optional<double> value_of(const EpochRecord& epoch, const SearchSpec& search) {
  const std::optional<double> value = epoch[metric_called(search.metric)];
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return search.largest_is_best ? -*value : *value;
}

bool has_epoch(const TrialResult& trial, int epoch) {
  return trial.values.size() >= static_cast<std::size_t>(epoch);
}

// Of a trial that has this epoch, or has ended before it.
std::optional<double> value_at(const TrialResult& trial, int epoch) {
  return has_epoch(trial, epoch) ? trial.values[static_cast<std::size_t>(epoch) - 1] : final_value(trial);
}

}  // namespace

TrialResult trial_result(const RunRecord& run, const SearchSpec& search, bool best_counts) {
  TrialResult trial;
  std::optional<double> best;
  for (const EpochRecord& epoch : run.epochs) {
    std::optional<double> value = value_of(epoch, search);
    if (value && (!best || *value < *best)) best = value;
    trial.values.push_back(best_counts ? best : value);
  }
  trial.failed = run.status == RunStatus::kFailed || run.status == RunStatus::kSkipped;
  trial.ended = trial.failed || run.status == RunStatus::kCompleted;
  return trial;
}

std::optional<double> final_value(const TrialResult& trial) {
  return trial.failed || trial.values.empty() ? std::nullopt : trial.values.back();
}

TrialSchedule::TrialSchedule(const SearchSpec& search, std::size_t trials, int epochs)
    : search_(search), epochs_(epochs), brackets_(search_brackets(search, trials, epochs)) {
  for (const HyperbandBracket& bracket : brackets_)
    total_epochs_ += static_cast<double>(bracket.halving.total_epochs());
  if (brackets_.empty())
    total_epochs_ = static_cast<double>(std::max(trials, search.trials)) * static_cast<double>(epochs);
}

bool TrialSchedule::reaches_target(const std::optional<double>& value) const {
  if (!value || !search_.target) return false;
  return *value <= (search_.largest_is_best ? -*search_.target : *search_.target);
}

std::optional<std::size_t> TrialSchedule::winner(std::span<const TrialResult> trials) const {
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].ended && reaches_target(final_value(trials[i]))) return i;
  }
  return std::nullopt;
}

std::size_t TrialSchedule::known(std::size_t trial) const {
  return trial < search_.at_once ? 0 : trial - search_.at_once + 1;
}

bool TrialSchedule::may_begin(std::size_t trial, std::span<const TrialResult> trials) const {
  if (search_.method != SearchMethod::kTpe && !search_.target) return true;
  const std::span<const TrialResult> before = trials.first(known(trial));
  return std::ranges::all_of(before, [this](const TrialResult& earlier) {
    return earlier.ended && !reaches_target(final_value(earlier));
  });
}

std::vector<TrialDecision> TrialSchedule::decide(std::span<const TrialResult> trials) const {
  std::vector<TrialDecision> decisions(trials.size());
  if (brackets_.empty()) {
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i].ended)
        decisions[i].fate = TrialFate::kEnded;
      else if (may_begin(i, trials))
        decisions[i] = {.fate = TrialFate::kTrains, .until_epoch = epochs_};
    }
  }
  for (const HyperbandBracket& bracket : brackets_) decide(bracket, trials, decisions);
  return decisions;
}

void TrialSchedule::decide(const HyperbandBracket& bracket, std::span<const TrialResult> trials,
                           std::vector<TrialDecision>& decisions) const {
  const std::vector<Rung>& rungs = bracket.halving.rungs();
  // A space may have fewer points than the bracket has places.
  const std::size_t places =
      std::min(rungs[0].trials, trials.size() - std::min(trials.size(), bracket.first_trial));
  std::vector<std::size_t> reached(places);
  std::iota(reached.begin(), reached.end(), bracket.first_trial);
  for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
    const int until = rungs[rung].epochs;
    bool is_complete = true;
    for (const std::size_t i : reached) {
      const bool is_in = trials[i].ended || (has_epoch(trials[i], until) && until < epochs_);
      is_complete &= is_in;
      decisions[i].fate = trials[i].ended ? TrialFate::kEnded
                          : is_in         ? TrialFate::kWaits
                                          : TrialFate::kTrains;
      decisions[i].until_epoch = until;
    }
    if (!is_complete || rung + 1 == rungs.size()) return;
    std::vector<std::optional<double>> values;
    values.reserve(reached.size());
    for (const std::size_t i : reached) values.push_back(value_at(trials[i], until));
    std::vector<std::size_t> good = bracket.halving.decide(rung, values);
    if (std::ranges::any_of(values, [this](const auto& value) { return reaches_target(value); }))
      std::erase_if(good, [&](std::size_t place) { return !reaches_target(values[place]); });
    std::vector<std::size_t> next;
    for (std::size_t place = 0; place < reached.size(); ++place) {
      const std::size_t i = reached[place];
      if (std::ranges::find(good, place) != good.end()) {
        next.push_back(i);
      } else if (!trials[i].ended) {
        decisions[i] = {.fate = TrialFate::kPruned,
                        .reason = fmt::format("not among the best {} of {} after epoch {}", good.size(),
                                              reached.size(), until)};
      }
    }
    reached = std::move(next);
  }
}

}  // namespace sweep
