#include "runmanager/config/search_spec.h"

#include <algorithm>
#include <utility>

#include "runmanager/search/population.h"

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

nlohmann::ordered_json with_goals(nlohmann::ordered_json part, const nlohmann::ordered_json& file) {
  using Json = nlohmann::ordered_json;
  if (!file.is_object() || !file.contains("command") || !part.is_object()) return part;
  const Json objective = file.value("objective", Json("loss"));
  if (!objective.is_string()) return part;
  if (!part.contains("metric")) part["metric"] = objective;
  if (part.contains("mode") || !file.contains("mode")) return part;
  const auto mode_of = [&](const Json& name) -> Json {
    if (!name.is_string()) return nullptr;
    const Metric& metric = metric_called(name.get<std::string>());
    if (&metric == &metric_called(objective.get<std::string>())) return file["mode"];
    return metric.larger_is_better ? "max" : "min";
  };
  const Json metric = part["metric"];
  Json& mode = part["mode"] = metric.is_array() ? Json::array() : mode_of(metric);
  if (metric.is_array())
    for (const Json& name : metric) mode.push_back(mode_of(name));
  return part;
}

Sampler make_sampler(const SearchSpec& search, const SearchDomain& domain) {
  return {domain,
          {.seed = search.seed,
           .learns = chooses_points(search),
           .learned = search.learned,
           .points = search.points}};
}

}  // namespace sweep
