#include "runmanager/config/goal.h"

#include <fmt/format.h>

#include <algorithm>

namespace sweep {

Goal asked_goal(const std::string& name, bool largest_is_best) {
  return {&metric_called(name), largest_is_best, name};
}

Goal goal_for(const Metric& metric, const Goals& goals) {
  const auto found = std::ranges::find(goals, &metric, &Goal::metric);
  return found != goals.end() ? *found : Goal{&metric, metric.larger_is_better};
}

std::string goal_names(const Goals& goals) {
  std::string names(goals[0].metric->name);
  for (std::size_t i = 1; i < goals.size(); ++i)
    names += fmt::format("{}{}", i + 1 == goals.size() ? " and " : ", ", goals[i].metric->name);
  return names;
}

std::string goal_text(const Goals& goals) {
  return fmt::format("{} {}{}", goals[0].largest_is_best ? "highest" : "lowest", goals[0].metric->name,
                     goals.size() > 1 ? fmt::format(", the first of {} goals", goals.size()) : "");
}

}  // namespace sweep
