// Proposes points for search_quality.py, which evaluates them, and measures what a suggestion takes.
//
// Each line of the input is JSON. {"dimensions", "method", "seed", "earlier"} begins a search: dimensions as
// dimension_of() reads them, and trials that are known: [point, values]. Another line is a list with the
// values of the last point; null: it is forgotten. Each line is answered with {"point", "ms"}: the next
// point, null if there is none, and the processor's milliseconds.
#include <algorithm>
#include <ctime>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/search/sampler.h"

namespace {

using namespace sweep;
using Json = nlohmann::ordered_json;

// {"choices", "ordered"}, or {"low", "high", "integer", "log"}.
Dimension dimension_of(const Json& json) {
  if (json.contains("choices"))
    return {.kind = DimensionKind::kChoice, .choices = json.at("choices"), .ordered = json.at("ordered")};
  constexpr DimensionKind kKinds[2][2] = {{DimensionKind::kUniform, DimensionKind::kLogUniform},
                                          {DimensionKind::kInteger, DimensionKind::kLogInteger}};
  return {.kind = kKinds[json.at("integer").get<bool>()][json.at("log").get<bool>()],
          .low = json.at("low"),
          .high = json.at("high")};
}

// "when" of a dimension: other ones, by number, and the values with which it exists.
SearchDomain domain_of(const Json& dimensions) {
  using Conditions = std::vector<std::pair<std::size_t, std::vector<double>>>;
  SearchDomain domain;
  std::vector<Conditions> conditions;
  for (const Json& json : dimensions) {
    domain.dimensions.push_back(dimension_of(json));
    conditions.push_back(json.at("when"));
  }
  if (std::ranges::all_of(conditions, &Conditions::empty)) return domain;
  domain.is_active = [conditions](const SearchPoint& point, std::size_t d) {
    return std::ranges::all_of(conditions[d], [&](const auto& condition) {
      return std::ranges::find(condition.second, point[condition.first]) != condition.second.end();
    });
  };
  return domain;
}

SearchPoint point_of(const Json& json) {
  SearchPoint point;
  for (const Json& value : json)
    point.push_back(value.is_null() ? std::nullopt : std::optional(value.get<double>()));
  return point;
}

Json point_json(const SearchPoint& point) {
  Json json = Json::array();
  for (const auto& value : point) json.push_back(value ? Json(*value) : Json());
  return json;
}

Observation observation_of(const Json& point, const Json& values) {
  Observation trial{.point = point_of(point), .value = values.at(0)};
  trial.others.assign(values.begin() + 1, values.end());
  return trial;
}

void answer_lines() {
  std::optional<Sampler> sampler;
  std::vector<Observation> trials;
  std::size_t trial = 0;
  Json point;  // the last one
  for (std::string line; std::getline(std::cin, line);) {
    const Json json = Json::parse(line);
    if (json.is_object()) {
      sampler.emplace(domain_of(json.at("dimensions")),
                      SamplerOptions{.seed = json.at("seed"), .learns = json.at("method") == "tpe"});
      trials.clear();
      for (const Json& known : json.at("earlier")) trials.push_back(observation_of(known[0], known[1]));
      trial = trials.size();
    } else if (json.is_array()) {
      trials.push_back(observation_of(point, json));
    }
    // Processor time, which other programs on the machine disturb less.
    const std::clock_t start = std::clock();
    const std::optional<SearchPoint> next = sampler.value().suggest(trial++, trials);
    const double ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    point = next ? point_json(*next) : Json();
    std::cout << Json{{"point", point}, {"ms", ms}}.dump() << std::endl;
  }
}

}  // namespace

int main() {
  try {
    answer_lines();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "search_benchmark: " << error.what() << '\n';
    return 2;
  }
}
