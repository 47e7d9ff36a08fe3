// Finds the best run of a sweep.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/config/metrics.h"
#include "runmanager/config/run_config.h"
#include "runmanager/config/search_spec.h"
#include "runmanager/records/results.h"
#include "runmanager/search/pareto.h"

namespace sweep {

/// The metric by which the runs of a sweep are judged. With several the first one decides what is best.
struct Goal {
  const Metric* metric = nullptr;  // never null in a goal that a function here returns
  bool largest_is_best = false;
  bool is_asked = false;          // by the sweep file's "search"
  std::vector<Goal> others = {};  // the other ones

  /// Whether a run with the value `a` is better than one with `b`.
  bool is_better(double a, double b) const { return largest_is_best ? a > b : a < b; }
  /// `value` so that smaller is better.
  double cost(double value) const { return largest_is_best ? -value : value; }
};

Goal goal_of(const SearchSpec& search);
/// The goal of the sweep's search, or its "objective"; none if it has neither.
std::optional<Goal> goal_of(const Sweep& sweep);
/// The goal that a sweep.json, or a sweep file, has; none if it has neither "search" nor "objective".
std::optional<Goal> recorded_goal(const nlohmann::ordered_json& sweep);
/// The goal of a sweep that has none: the first of the metrics, from the validation accuracy to the training
/// loss, that a completed run has, or if there are no completed runs, any run.
Goal default_goal(const std::vector<RunRecord>& runs);

/// The index of the best of the completed runs by `goal`; among equals the one with the lower loss on the
/// same samples, then the first. With several goals it is the first of front_runs(). Nullopt if none has the
/// metric as a number.
std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs, const Goal& goal);

/// The indices of the completed runs that no other one beats in all goals, see pareto_front(): the best by
/// the first goal first. Empty for a single goal.
std::vector<std::size_t> front_runs(const std::vector<RunRecord>& runs, const Goal& goal);
/// Moves front_runs() before the other runs, in their order.
void put_front_first(std::vector<RunRecord>& runs, const Goal& goal);

/// The run's values of all goals, smaller is better; none if one is missing or not finite.
std::optional<GoalValues> goal_values(const RunRecord& run, const Goal& goal);

/// `goal`, and then the others.
std::vector<Goal> all_goals(const Goal& goal);
/// The one of all_goals() that has the metric; if none does, the metric with its own better end.
Goal goal_for(const Metric& metric, const Goal& goal);
/// "validation accuracy and time per epoch": the names of all goals.
std::string goal_names(const Goal& goal);
/// The criterion of best_run() as text: "highest validation accuracy", "…, the first of 2 goals".
std::string goal_text(const Goal& goal);

}  // namespace sweep
