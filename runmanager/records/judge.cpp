#include "runmanager/records/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runmanager/records/run_metric.h"

namespace sweep {

Goal goal_of(const SearchSpec& search) {
  Goal goal{&metric_called(search.metric), search.largest_is_best, true};
  for (const SearchGoal& other : search.others)
    goal.others.push_back({&metric_called(other.metric), other.largest_is_best, true});
  return goal;
}

std::optional<Goal> goal_of(const Sweep& sweep) {
  if (sweep.search) return goal_of(*sweep.search);
  return recorded_goal(sweep.resolved);
}

std::optional<Goal> recorded_goal(const nlohmann::ordered_json& sweep) {
  // The texts of a list, or the one that is there.
  const auto texts_in = [](const nlohmann::ordered_json& object, const char* key) {
    std::vector<std::string> texts;
    const auto value = object.find(key);
    if (value == object.end()) return texts;
    for (const auto& text : value->is_array() ? *value : nlohmann::ordered_json::array({*value})) {
      if (text.is_string()) texts.push_back(text);
    }
    return texts;
  };
  const auto goal = [&](const nlohmann::ordered_json& object, const std::vector<std::string>& names) {
    const std::vector<std::string> modes = texts_in(object, "mode");
    std::vector<Goal> goals;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Metric& metric = metric_called(names[i]);
      goals.push_back({&metric, i < modes.size() ? modes[i] == "max" : metric.larger_is_better, true});
    }
    goals[0].others.assign(goals.begin() + 1, goals.end());
    return goals[0];
  };
  if (!sweep.is_object()) return std::nullopt;
  if (const auto search = sweep.find("search"); search != sweep.end() && search->is_object()) {
    const std::vector<std::string> metrics = texts_in(*search, "metric");
    if (!metrics.empty()) return goal(*search, metrics);
    return goal(*search, {sweep.contains("command") ? "loss" : "Loss/validation"});
  }
  const std::vector<std::string> objective = texts_in(sweep, "objective");
  return objective.empty() ? std::nullopt : std::optional(goal(sweep, objective));
}

namespace {

// The key of the metric that default_goal() takes.
std::string default_metric(const std::vector<const RunRecord*>& runs) {
  for (const char* key : {"validation_accuracy", "validation_rmse", "accuracy", "rmse", "validation_loss"}) {
    const auto has = [key](const RunRecord* run) { return run_metric(*run, key).has_value(); };
    if (std::ranges::any_of(runs, has)) return key;
  }
  if (std::ranges::any_of(runs, [](const RunRecord* run) { return run_metric(*run, "loss").has_value(); }))
    return "loss";
  // What a person's own program measures, first.
  const std::vector<std::string> names = metric_names(runs);
  const auto own =
      std::ranges::find_if(names, [](const std::string& name) { return find_metric(name) == nullptr; });
  return own != names.end() ? *own : "loss";
}

}  // namespace

Goal default_goal(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> completed, all;
  for (const RunRecord& run : runs) {
    all.push_back(&run);
    if (run.status == RunStatus::kCompleted) completed.push_back(&run);
  }
  const Metric& metric = metric_named(default_metric(completed.empty() ? all : completed));
  return {&metric, metric.larger_is_better, false};
}

std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs, const Goal& goal) {
  if (!goal.others.empty()) {
    const std::vector<std::size_t> front = front_runs(runs, goal);
    return front.empty() ? std::nullopt : std::optional(front[0]);
  }
  const char* const loss_key = goal.metric->part == MetricPart::kValidation ? "validation_loss" : "loss";
  std::optional<std::size_t> best;
  double best_value = 0, best_loss = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status != RunStatus::kCompleted) continue;
    const std::optional<double> value = run_metric(runs[i], *goal.metric);
    const double loss = run_metric(runs[i], loss_key).value_or(0);
    if (!value || std::isnan(*value) || std::isnan(loss)) continue;
    if (best && !goal.is_better(*value, best_value) && !(*value == best_value && loss < best_loss)) continue;
    best = i;
    best_value = *value;
    best_loss = loss;
  }
  return best;
}

std::optional<GoalValues> goal_values(const RunRecord& run, const Goal& goal) {
  GoalValues values;
  for (const Goal& one : all_goals(goal)) {
    const std::optional<double> value = run_metric(run, *one.metric);
    if (!value || !std::isfinite(*value)) return std::nullopt;
    values.push_back(one.cost(*value));
  }
  return values;
}

std::vector<std::size_t> front_runs(const std::vector<RunRecord>& runs, const Goal& goal) {
  if (goal.others.empty()) return {};
  std::vector<GoalValues> points;
  std::vector<std::size_t> of_points;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status != RunStatus::kCompleted) continue;
    std::optional<GoalValues> values = goal_values(runs[i], goal);
    if (!values) continue;
    points.push_back(*std::move(values));
    of_points.push_back(i);
  }
  std::vector<std::size_t> front = pareto_front(points);
  for (std::size_t& place : front) place = of_points[place];
  return front;
}

void put_front_first(std::vector<RunRecord>& runs, const Goal& goal) {
  if (goal.others.empty()) return;
  std::vector<RunRecord> sorted;
  std::vector<bool> is_taken(runs.size());
  for (const std::size_t i : front_runs(runs, goal)) {
    sorted.push_back(std::move(runs[i]));
    is_taken[i] = true;
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!is_taken[i]) sorted.push_back(std::move(runs[i]));
  runs = std::move(sorted);
}

std::vector<Goal> all_goals(const Goal& goal) {
  std::vector<Goal> goals = {{goal.metric, goal.largest_is_best, goal.is_asked}};
  goals.insert(goals.end(), goal.others.begin(), goal.others.end());
  return goals;
}

Goal goal_for(const Metric& metric, const Goal& goal) {
  for (const Goal& one : all_goals(goal))
    if (one.metric == &metric) return one;
  return {&metric, metric.larger_is_better, false};
}

std::string goal_names(const Goal& goal) {
  std::string names(goal.metric->name);
  for (const Goal& other : goal.others)
    names += fmt::format("{}{}", &other == &goal.others.back() ? " and " : ", ", other.metric->name);
  return names;
}

std::string goal_text(const Goal& goal) {
  std::string text = fmt::format("{} {}", goal.largest_is_best ? "highest" : "lowest", goal.metric->name);
  return goal.others.empty() ? text : text + fmt::format(", the first of {} goals", goal.others.size() + 1);
}

}  // namespace sweep
