// Finds the best run of a sweep.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "runmanager/config/metrics.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/search/pareto.h"

namespace sweep {

/// The goals of the sweep's search, or its "objective"; with neither, one without a metric for its "mode", or
/// none.
Goals goals_of(const Sweep& sweep);
/// The same of a sweep.json, or a sweep file.
Goals recorded_goals(const nlohmann::ordered_json& sweep);
/// `asked`, or the goal of a sweep that names no metric: the first of the metrics, from the validation
/// accuracy to the training loss, that a completed run has, or if there are no completed runs, any run.
Goals default_goals(const std::vector<RunRecord>& runs, const Goals& asked = {});

/// The index of the best of the completed runs by `goals`; among equals the one with the lower loss on the
/// same samples, then the first. With several goals it is the first of front_runs(). Nullopt if none has the
/// metric as a number.
std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs, const Goals& goals);

/// The indices of the completed runs that no other one beats in all goals, see pareto_front(): the best by
/// the first goal first. Empty for a single goal.
std::vector<std::size_t> front_runs(const std::vector<RunRecord>& runs, const Goals& goals);
/// Moves front_runs() before the other runs, in their order.
void put_front_first(std::vector<RunRecord>& runs, const Goals& goals);

/// Whether a run with that status is final: no process trains it any further.
bool has_ended(RunStatus status);
/// The same, but a run that a search has pruned may go on in a later one.
bool is_over(RunStatus status);

/// The run's values of all goals, smaller is better; none if one is missing or not finite.
std::optional<GoalValues> goal_values(const RunRecord& run, const Goals& goals);

}  // namespace sweep
