#include "runmanager/slurm/open_trials.h"

#include <algorithm>
#include <vector>

#include "runmanager/sweep/trial_schedule.h"

namespace sweep {

std::size_t open_trials(const Sweep& sweep, std::span<const RunRecord> records, bool tries_failed) {
  const SearchSpec& search = *sweep.search;
  std::vector<TrialResult> results;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RunConfig& config = sweep.runs[std::min(i, sweep.runs.size() - 1)];
    results.push_back(trial_result(records[i], search, keeps_best(config)));
    if (tries_failed && records[i].status == RunStatus::kFailed) results[i].ended = results[i].failed = false;
  }
  const int epochs = sweep.runs.front().epochs;
  const TrialSchedule schedule(search, sweep.runs.size(), epochs);
  const std::size_t total = total_trials(search, epochs);
  const bool has_more =
      adds_trials(search) &&
      results.size() < (chooses_points(search)
                            ? std::min(total, number_of_points(sweep.trials->domain).value_or(total))
                            : total);
  const std::vector<TrialDecision> decisions = schedule.decide(results, has_more);
  const auto open =
      static_cast<std::size_t>(std::ranges::count(decisions, TrialFate::kTrains, &TrialDecision::fate));
  if (open > 0 || !has_more) return open;
  if (!chooses_points(search)) return schedule.next_copy(results) ? 1 : 0;
  return schedule.known_to_next(results) ? 1 : 0;
}

}  // namespace sweep
