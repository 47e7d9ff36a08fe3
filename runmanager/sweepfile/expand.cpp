#include "runmanager/sweepfile/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

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

constexpr std::size_t kNoAxis = static_cast<std::size_t>(-1);

// The rules of one grid, for any of its combinations, each given as the index of every axis's value. A
// condition asks for the current value of a key: that of its axis if the axis exists in this combination,
// else that of the file. Whether an axis exists depends on "when" rules, whose conditions may ask for other
// conditional axes; this recursion ends because cyclic rules have been dropped. Values are compared once, not
// for every combination.
class GridRules {
 public:
  GridRules(const SearchSpace& space, const Grid& grid, const JsonNode& base) : space_(space) {
    for (const Axis& axis : grid.axes) {
      std::vector<Tests>& rules = when_.emplace_back();
      for (const WhenRule& rule : space.when) {
        if (rule.path == axis.path) rules.push_back(tests_of(rule.conditions, grid, base));
      }
    }
    for (const ExcludeRule& rule : space.exclude) exclude_.push_back(tests_of(rule.conditions, grid, base));
  }

  /// Whether the axis exists in this combination.
  bool is_active(std::size_t axis, const std::vector<std::size_t>& chosen) const {
    return std::all_of(when_[axis].begin(), when_[axis].end(),
                       [&](const Tests& tests) { return hold(tests, chosen); });
  }

  /// The first rule that leaves the combination out; null if none does.
  const ExcludeRule* excluding(const std::vector<std::size_t>& chosen) const {
    const auto found = std::find_if(exclude_.begin(), exclude_.end(),
                                    [&](const Tests& tests) { return hold(tests, chosen); });
    return found == exclude_.end() ? nullptr
                                   : &space_.exclude[static_cast<std::size_t>(found - exclude_.begin())];
  }

 private:
  // A condition, answered for each value of its axis and for where there is no such axis.
  struct Test {
    std::size_t axis = kNoAxis;
    std::vector<bool> by_value{};
    bool otherwise = false;
  };
  using Tests = std::vector<Test>;  // all of them have to hold

  static Tests tests_of(const std::vector<Condition>& conditions, const Grid& grid, const JsonNode& base) {
    Tests tests;
    for (const Condition& condition : conditions) {
      Test test;
      const auto axis = std::find_if(grid.axes.begin(), grid.axes.end(),
                                     [&](const Axis& candidate) { return candidate.path == condition.path; });
      if (axis != grid.axes.end()) {
        test.axis = static_cast<std::size_t>(axis - grid.axes.begin());
        for (const JsonNode& value : axis->values)
          test.by_value.push_back(is_met(condition, compared_value(value, axis->path)));
      }
      const std::optional<JsonNode> value = value_at(base, condition.path);
      test.otherwise = value && is_met(condition, *value);
      tests.push_back(std::move(test));
    }
    return tests;
  }

  bool hold(const Tests& tests, const std::vector<std::size_t>& chosen) const {
    return std::all_of(tests.begin(), tests.end(), [&](const Test& test) {
      const bool is_axis = test.axis != kNoAxis && is_active(test.axis, chosen);
      return is_axis ? test.by_value[chosen[test.axis]] : test.otherwise;
    });
  }

  const SearchSpace& space_;
  std::vector<std::vector<Tests>> when_;  // by axis
  std::vector<Tests> exclude_;            // as in space_
};

// Tells combinations apart. Those with the same values are the same run: those that differ only in axes that
// do not exist in them, and those that two grids have in common.
class SeenCombinations {
 public:
  explicit SeenCombinations(const SearchSpace& space)
      : can_repeat_(space.grids.size() > 1 || !space.when.empty()) {}

  /// Whether it is the first of its kind.
  bool insert(const Combination& combination) {
    if (!can_repeat_) return true;  // The values of an axis differ.
    std::string identity;
    for (const AxisValue& value : combination.values) {
      const std::uint32_t number = number_of(value);
      identity.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    return seen_.insert(std::move(identity)).second;
  }

 private:
  // Networks of axes have names that differ, so the name stands for all of the network.
  static std::string text_of(const AxisValue& value) {
    const JsonNode* name = value.axis->path == KeyPath{"network"} ? value.value().find("name") : nullptr;
    return fmt::format("{}={}", joined(value.axis->path),
                       to_json(name != nullptr ? *name : value.value()).dump());
  }

  std::uint32_t number_of(const AxisValue& value) {
    std::vector<std::uint32_t>& numbers = numbers_[value.axis];
    if (numbers.empty()) {
      for (std::size_t i = 0; i < value.axis->values.size(); ++i) {
        const auto next = static_cast<std::uint32_t>(by_text_.size());
        numbers.push_back(by_text_.emplace(text_of({value.axis, i}), next).first->second);
      }
    }
    return numbers[value.index];
  }

  bool can_repeat_;
  std::unordered_map<std::string, std::uint32_t> by_text_;
  std::unordered_map<const Axis*, std::vector<std::uint32_t>> numbers_;  // of its values
  std::unordered_set<std::string> seen_;
};

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

void expand_grid(const SearchSpace& space, const Grid& grid, const JsonNode& base, SeenCombinations& seen,
                 std::vector<Combination>& combinations) {
  const std::vector<Dimension> dimensions = dimensions_of(grid);
  std::vector<std::size_t> extents;
  extents.reserve(dimensions.size());
  for (const Dimension& dimension : dimensions) extents.push_back(extent_of(dimension, grid));

  const GridRules rules(space, grid, base);
  std::vector<std::size_t> chosen(grid.axes.size());  // value of each axis
  for_each_product(extents, [&](const std::vector<std::size_t>& positions) {
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      for (const std::size_t axis : dimensions[d]) chosen[axis] = positions[d];
    }
    Combination combination;
    combination.values.reserve(grid.axes.size());
    for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
      if (rules.is_active(axis, chosen)) combination.values.push_back({&grid.axes[axis], chosen[axis]});
    }
    if (!seen.insert(combination)) return;
    combination.excluded = rules.excluding(chosen);
    for (; combination.repeat + 1 < space.repeats; ++combination.repeat) combinations.push_back(combination);
    combinations.push_back(std::move(combination));
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
  SeenCombinations seen(space);
  expansion.combinations.reserve(static_cast<std::size_t>(runs));
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
                                        [](const Combination& c) { return c.excluded != nullptr; });
  if (nothing_left)
    problems.add(*base.find("exclude")->location, "every combination is excluded, want at least one run");
  return expansion;
}

std::string exclusion_reason(const ExcludeRule& rule) {
  std::vector<std::string> parts;
  for (const Condition& condition : rule.conditions) {
    std::vector<std::string> values;
    for (const JsonNode& value : condition.values) values.push_back(to_json(value).dump());
    parts.push_back(condition.key + " is " + listed(values));
  }
  return fmt::format("{}: {}", to_string(*rule.location), fmt::join(parts, " and "));
}

}  // namespace sweep
