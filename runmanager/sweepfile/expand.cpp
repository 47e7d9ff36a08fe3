#include "runmanager/sweepfile/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sweep {
namespace {

constexpr std::size_t kMaxRuns = 100000;  // Each is a directory; more is a typing error.

// Axes that move as one: a zipped group, or a single axis.
using Dimension = std::vector<std::size_t>;

std::vector<Dimension> dimensions_of(const Grid& grid) {
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    const auto group = std::find_if(grid.zipped.begin(), grid.zipped.end(), [&](const Dimension& zipped) {
      return std::find(zipped.begin(), zipped.end(), i) != zipped.end();
    });
    if (group == grid.zipped.end()) {
      dimensions.push_back({i});
    } else if (group->front() == i) {
      dimensions.push_back(*group);
    }
  }
  return dimensions;
}

// Returns the number of values of the shortest axis. Zipped axes of different lengths are reported where they
// are read; expansion goes on to find other mistakes.
std::size_t extent_of(const Dimension& dimension, const Grid& grid) {
  std::size_t extent = grid.axes[dimension[0]].values.size();
  for (const std::size_t axis : dimension) extent = std::min(extent, grid.axes[axis].values.size());
  return extent;
}

// Evaluates the rules for one combination. A condition asks for the current value of a key: that of its axis
// if the axis exists in this combination, else that of the file. Whether an axis exists depends on "when"
// rules, whose conditions may ask for other conditional axes; this recursion ends because cyclic rules have
// been dropped.
class RuleChecker {
 public:
  RuleChecker(const SearchSpace& space, const JsonNode& base, const std::vector<Assignment>& all)
      : space_(space), base_(base), all_(all) {}

  /// Whether the axis at `path` exists in this combination. Rules have no cycles.
  bool is_active(const KeyPath& path) const {
    return std::all_of(space_.when.begin(), space_.when.end(),
                       [&](const WhenRule& rule) { return rule.path != path || holds(rule.conditions); });
  }

  bool holds(const std::vector<Condition>& conditions) const {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      const std::optional<JsonNode> value = current(condition.path);
      return value && std::any_of(condition.values.begin(), condition.values.end(),
                                  [&](const JsonNode& wanted) { return same_value(*value, wanted); });
    });
  }

 private:
  // Conditions compare an optimizer or data set that is an object by its name.
  static JsonNode named(const JsonNode& value) {
    const JsonNode* name = value.find("name");
    return name != nullptr ? *name : value;
  }

  std::optional<JsonNode> current(const KeyPath& path) const {
    for (const Assignment& assignment : all_) {
      if (assignment.path == path && is_active(path))
        return path.size() == 1 ? named(assignment.value) : assignment.value;
    }
    return value_at(base_, path);
  }

  const SearchSpace& space_;
  const JsonNode& base_;
  const std::vector<Assignment>& all_;
};

std::string exclusion_reason(const ExcludeRule& rule) {
  std::vector<std::string> parts;
  for (const Condition& condition : rule.conditions) {
    std::vector<std::string> values;
    for (const JsonNode& value : condition.values) values.push_back(to_json(value).dump());
    parts.push_back(condition.key + " is " + listed(values));
  }
  return fmt::format("{}: {}", to_string(*rule.location), fmt::join(parts, " and "));
}

// Applies the rules to one element of the product: drops axes that do not exist, and finds the first
// exclusion.
Combination make_combination(const SearchSpace& space, const JsonNode& base,
                             const std::vector<Assignment>& all) {
  const RuleChecker checker(space, base, all);
  Combination combination;
  for (const Assignment& assignment : all) {
    if (checker.is_active(assignment.path)) combination.assignments.push_back(assignment);
  }
  for (const ExcludeRule& rule : space.exclude) {
    if (combination.excluded.empty() && checker.holds(rule.conditions))
      combination.excluded = exclusion_reason(rule);
  }
  return combination;
}

// Combinations with the same assignments are the same run: those that differ only in axes that do not exist
// in them, and those that two grids have in common.
// Networks of axes have names that differ, so the name stands for all of the network.
std::string identity_of(const Combination& combination) {
  std::string identity;
  for (const Assignment& assignment : combination.assignments) {
    const JsonNode* name = assignment.path == KeyPath{"network"} ? assignment.value.find("name") : nullptr;
    identity += fmt::format("{}={}\n", joined(assignment.path),
                            to_json(name != nullptr ? *name : assignment.value).dump());
  }
  return identity;
}

// Calls `use` with the chosen index of every dimension, the last varying fastest: counts like an odometer.
// Without dimensions the product has one element.
template <typename Use>
void for_each_product(const std::vector<std::size_t>& extents, const Use& use) {
  std::vector<std::size_t> chosen(extents.size(), 0);
  for (;;) {
    use(chosen);
    std::size_t d = extents.size();
    while (d > 0 && ++chosen[d - 1] == extents[d - 1]) chosen[--d] = 0;
    if (d == 0) return;
  }
}

void expand_grid(const SearchSpace& space, const Grid& grid, const JsonNode& base,
                 std::set<std::string>& seen, std::vector<Combination>& combinations) {
  const std::vector<Dimension> dimensions = dimensions_of(grid);
  std::vector<std::size_t> extents;
  for (const Dimension& dimension : dimensions) extents.push_back(extent_of(dimension, grid));

  std::vector<Assignment> all;
  for (const Axis& axis : grid.axes) all.push_back({axis.key, axis.path, axis.location, {}});
  for_each_product(extents, [&](const std::vector<std::size_t>& chosen) {
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      for (const std::size_t axis : dimensions[d]) all[axis].value = grid.axes[axis].values[chosen[d]];
    }
    Combination combination = make_combination(space, base, all);
    if (!seen.insert(identity_of(combination)).second) return;
    for (int repeat = 0; repeat < space.repeats; ++repeat) {
      combination.repeat = repeat;
      combinations.push_back(combination);
    }
  });
}

// Runs of all grids before rules. A double, because the product may exceed any integer.
double count_runs(const SearchSpace& space) {
  double total = 0;
  for (const Grid& grid : space.grids) {
    double product = space.repeats;
    for (const Dimension& dimension : dimensions_of(grid))
      product *= static_cast<double>(extent_of(dimension, grid));
    total += product;
  }
  return total;
}

}  // namespace

Expansion expand(const SearchSpace& space, const JsonNode& base, Problems& problems) {
  Expansion expansion;
  const double runs = count_runs(space);
  if (runs > static_cast<double>(kMaxRuns)) {
    const JsonNode* params = base.find("params");
    problems.add(params != nullptr ? *params->location : *base.location,
                 fmt::format("these are {:.0f} runs, want at most {}", runs, kMaxRuns));
    return expansion;
  }
  std::set<std::string> seen;
  for (const Grid& grid : space.grids) {
    for (const Axis& axis : grid.axes) {
      if (std::find(expansion.keys.begin(), expansion.keys.end(), axis.key) == expansion.keys.end()) {
        expansion.keys.push_back(axis.key);
      }
    }
    expand_grid(space, grid, base, seen, expansion.combinations);
  }
  if (space.repeats > 1) expansion.keys.push_back("repeat");
  const bool nothing_left = !expansion.combinations.empty() &&
                            std::all_of(expansion.combinations.begin(), expansion.combinations.end(),
                                        [](const Combination& c) { return !c.excluded.empty(); });
  if (nothing_left)
    problems.add(*base.find("exclude")->location, "every combination is excluded, want at least one run");
  return expansion;
}

}  // namespace sweep
