#include "runmanager/config/search_spec.h"

#include <algorithm>
#include <utility>

namespace sweep {

Population population_of(const SearchSpec& search, std::size_t members, int epochs) {
  return {members, search.interval, epochs, static_cast<std::size_t>(search.reduction)};
}

std::vector<Halving> search_brackets(const SearchSpec& search, std::size_t trials, int epochs) {
  if (search.method == SearchMethod::kHyperband) {
    return hyperband_brackets(search.min_epochs, epochs, search.reduction,
                              search.trials > 0 ? std::optional(search.trials) : std::nullopt);
  }
  if (search.method != SearchMethod::kHalving) return {};
  return {Halving(trials, search.min_epochs, epochs, search.reduction)};
}

std::size_t points_at_start(const SearchSpec& search, int epochs) {
  if (search.method == SearchMethod::kPopulation) return search.trials;
  const std::size_t total = total_trials(search, epochs);
  if (!chooses_points(search)) return total;
  const std::vector<Halving> brackets = search_brackets(search, total, epochs);
  const std::size_t first = brackets.empty() ? total : brackets[0].end_trial();
  return std::min({search.at_once, total, first});
}

std::size_t total_trials(const SearchSpec& search, int epochs) {
  if (search.method == SearchMethod::kPopulation) return population_of(search, search.trials, epochs).total();
  if (search.method != SearchMethod::kHyperband) return search.trials;
  return search_brackets(search, 0, epochs).back().end_trial();
}

Goals goals_in(const nlohmann::ordered_json& part, const nlohmann::ordered_json& file) {
  using Json = nlohmann::ordered_json;
  const bool is_program = file.is_object() && file.contains("command");
  const Json objective = is_program ? file.value("objective", Json("loss")) : Json("Loss/validation"),
             objective_mode = is_program ? file.value("mode", Json()) : Json();
  const auto list = [](const Json& value) { return value.is_array() ? value : Json::array({value}); };
  const Json names = list(part.value("metric", objective)), modes = list(part.value("mode", Json()));
  Goals goals;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].is_string()) continue;
    Goal goal = asked_goal(names[i], false);
    Json mode = i < modes.size() ? modes[i] : Json();
    if (mode.is_null() && objective.is_string() &&
        goal.metric == &metric_called(objective.get<std::string>()))
      mode = objective_mode;
    goal.largest_is_best = mode.is_null() ? goal.metric->larger_is_better : mode == "max";
    goals.push_back(std::move(goal));
  }
  if (goals.empty()) goals = SearchSpec().goals;  // What was asked for is no metric.
  return goals;
}

Sampler make_sampler(const SearchSpec& search, const SearchDomain& domain) {
  return {domain,
          {.seed = search.seed,
           .learns = chooses_points(search),
           .learned = search.learned,
           .points = search.points}};
}

}  // namespace sweep
