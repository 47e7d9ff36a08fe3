#include "runmanager/sweepfile/trial_space.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace sweep {
namespace {

Dimension dimension_of(const Axis& axis) {
  if (axis.range) return *axis.range;
  Dimension choices{.kind = DimensionKind::kChoice, .choices = axis.values.size()};
  choices.ordered =
      axis.values.size() > 2 &&
      std::ranges::all_of(axis.values, [](const JsonNode& value) { return value.is_number(); }) &&
      std::ranges::is_sorted(axis.values, {}, &JsonNode::number);
  return choices;
}

JsonNode value_of(const Axis& axis, double value) {
  if (!axis.range) return axis.values.at(static_cast<std::size_t>(value));
  return has_integers(axis.range->kind)
             ? from_json(static_cast<std::int64_t>(std::llround(value)), axis.location)
             : from_json(value, axis.location);
}

}  // namespace

TrialSpace::TrialSpace(SearchSpace space, JsonNode base) : space_(std::move(space)), base_(std::move(base)) {}

std::vector<Assignment> TrialSpace::values_of(const SearchPoint& point) const {
  std::vector<Assignment> values;
  for (std::size_t i = 0; i < axes().size(); ++i) {
    const Axis& axis = axes()[i];
    if (point[i]) values.push_back({axis.key, axis.path, axis.location, value_of(axis, *point[i])});
  }
  return values;
}

bool TrialSpace::holds(const std::vector<Condition>& conditions,
                       const std::vector<Assignment>& values) const {
  return std::ranges::all_of(conditions, [&](const Condition& condition) {
    const auto given = std::ranges::find(values, condition.path, &Assignment::path);
    if (given != values.end()) return is_met(condition, compared_value(given->value, given->path));
    const std::optional<JsonNode> value = value_at(base_, condition.path);
    return value && is_met(condition, *value);
  });
}

bool TrialSpace::exists(std::size_t axis, const std::vector<Assignment>& values) const {
  return std::ranges::all_of(space_.when, [&](const WhenRule& rule) {
    return rule.path != axes()[axis].path || holds(rule.conditions, values);
  });
}

bool TrialSpace::is_allowed(const SearchPoint& point) const {
  const std::vector<Assignment> values = values_of(point);
  return std::ranges::none_of(space_.exclude,
                              [&](const ExcludeRule& rule) { return holds(rule.conditions, values); });
}

SearchDomain TrialSpace::domain_of(const std::shared_ptr<const TrialSpace>& self) {
  SearchDomain domain;
  for (const Axis& axis : self->axes()) domain.dimensions.push_back(dimension_of(axis));
  if (!self->space_.when.empty()) {
    domain.is_active = [self](const SearchPoint& point, std::size_t axis) {
      return self->exists(axis, self->values_of(point));
    };
  }
  if (!self->space_.exclude.empty())
    domain.is_allowed = [self](const SearchPoint& point) { return self->is_allowed(point); };
  return domain;
}

}  // namespace sweep
