#include "runmanager/records/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runmanager/records/run_metric.h"

namespace sweep {

Goal goal_of(const SearchSpec& search) {
  return {&metric_called(search.metric), search.largest_is_best, true};
}

std::optional<Goal> goal_of(const Sweep& sweep) {
  if (sweep.search) return goal_of(*sweep.search);
  return recorded_goal(sweep.resolved);
}

std::optional<Goal> recorded_goal(const nlohmann::ordered_json& sweep) {
  const auto text_in = [](const nlohmann::ordered_json& object, const char* key) {
    const auto value = object.find(key);
    return value != object.end() && value->is_string() ? value->get<std::string>() : "";
  };
  const auto goal = [&](const nlohmann::ordered_json& object, const std::string& name) {
    const Metric& metric = metric_called(name);
    const std::string mode = text_in(object, "mode");
    return Goal{&metric, mode.empty() ? metric.larger_is_better : mode == "max", true};
  };
  if (!sweep.is_object()) return std::nullopt;
  if (const auto search = sweep.find("search"); search != sweep.end() && search->is_object()) {
    const std::string metric = text_in(*search, "metric");
    return goal(*search, !metric.empty() ? metric : sweep.contains("command") ? "loss" : "Loss/validation");
  }
  const std::string objective = text_in(sweep, "objective");
  return objective.empty() ? std::nullopt : std::optional(goal(sweep, objective));
}

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

std::string goal_text(const Goal& goal) {
  return fmt::format("{} {}", goal.largest_is_best ? "highest" : "lowest", goal.metric->name);
}

}  // namespace sweep
