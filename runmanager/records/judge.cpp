#include "runmanager/records/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runmanager/records/run_metric.h"

namespace sweep {

Goals goals_of(const Sweep& sweep) {
  return sweep.search ? sweep.search->goals : recorded_goals(sweep.resolved);
}

Goals recorded_goals(const nlohmann::ordered_json& sweep) {
  if (!sweep.is_object()) return {};
  using Json = nlohmann::ordered_json;
  const Json search = sweep.value("search", Json()), mode = sweep.value("mode", Json());
  if (search.is_object()) return goals_in(search, sweep);
  if (sweep.contains("objective")) return goals_in({{"metric", sweep["objective"]}, {"mode", mode}}, {});
  return mode.is_string() ? Goals{Goal{.largest_is_best = mode == "max"}} : Goals();
}

namespace {

// The key of the metric that default_goals() takes.
std::string default_metric(const std::vector<const RunRecord*>& runs) {
  for (const char* key :
       {"validation_accuracy", "validation_rmse", "accuracy", "rmse", "validation_loss", "loss"}) {
    const auto has = [key](const RunRecord* run) { return run_metric(*run, key).has_value(); };
    if (std::ranges::any_of(runs, has)) return key;
  }
  // What a person's own program measures, first.
  const std::vector<std::string> names = metric_names(runs);
  const auto own =
      std::ranges::find_if(names, [](const std::string& name) { return find_metric(name) == nullptr; });
  return own != names.end() ? *own : "loss";
}

}  // namespace

Goals default_goals(const std::vector<RunRecord>& runs, const Goals& asked) {
  if (!asked.empty() && asked[0].metric != nullptr) return asked;
  std::vector<const RunRecord*> completed, all;
  for (const RunRecord& run : runs) {
    all.push_back(&run);
    if (run.status == RunStatus::kCompleted) completed.push_back(&run);
  }
  Goal goal = goal_for(metric_named(default_metric(completed.empty() ? all : completed)), {});
  if (!asked.empty()) goal.largest_is_best = asked[0].largest_is_best;
  return {goal};
}

std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs, const Goals& goals) {
  if (goals.size() > 1) {
    const std::vector<std::size_t> front = front_runs(runs, goals);
    return front.empty() ? std::nullopt : std::optional(front[0]);
  }
  const Goal& goal = goals[0];
  const char* const loss_key = goal.metric->part == MetricPart::kValidation ? "validation_loss" : "loss";
  std::optional<std::size_t> best;
  double best_value = 0, best_loss = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status != RunStatus::kCompleted) continue;
    const std::optional<double> value = run_metric(runs[i], *goal.metric);
    const double loss = run_metric(runs[i], loss_key).value_or(0);
    if (!value || !std::isfinite(*value) || std::isnan(loss)) continue;
    if (best && !goal.is_better(*value, best_value) && !(*value == best_value && loss < best_loss)) continue;
    best = i;
    best_value = *value;
    best_loss = loss;
  }
  return best;
}

bool has_ended(RunStatus status) { return is_over(status) || status == RunStatus::kPruned; }

bool is_over(RunStatus status) {
  return status == RunStatus::kCompleted || status == RunStatus::kFailed || status == RunStatus::kSkipped;
}

std::optional<GoalValues> goal_values(const RunRecord& run, const Goals& goals) {
  GoalValues values;
  for (const Goal& goal : goals) {
    const std::optional<double> value = run_metric(run, *goal.metric);
    if (!value || !std::isfinite(*value)) return std::nullopt;
    values.push_back(goal.cost(*value));
  }
  return values;
}

std::vector<std::size_t> front_runs(const std::vector<RunRecord>& runs, const Goals& goals) {
  if (goals.size() < 2) return {};
  std::vector<GoalValues> points;
  std::vector<std::size_t> of_points;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status != RunStatus::kCompleted) continue;
    std::optional<GoalValues> values = goal_values(runs[i], goals);
    if (!values) continue;
    points.push_back(*std::move(values));
    of_points.push_back(i);
  }
  std::vector<std::size_t> front = pareto_front(points);
  for (std::size_t& place : front) place = of_points[place];
  return front;
}

void put_front_first(std::vector<RunRecord>& runs, const Goals& goals) {
  if (goals.size() < 2) return;
  std::vector<std::size_t> order = front_runs(runs, goals);
  const std::set<std::size_t> front(order.begin(), order.end());
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!front.contains(i)) order.push_back(i);
  std::vector<RunRecord> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(runs[i]));
  runs = std::move(sorted);
}

}  // namespace sweep
