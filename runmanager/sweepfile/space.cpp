#include "runmanager/sweepfile/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "core/network/arguments.h"

namespace sweep {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMaxRuns = 100000;  // Each is a directory; more is a typing error.
constexpr std::size_t kNoAxis = static_cast<std::size_t>(-1);

// Axes that move as one: a zipped group, or a single axis.
using AxisGroup = std::vector<std::size_t>;

std::vector<AxisGroup> groups_of(const Grid& grid) {
  std::vector<AxisGroup> groups;
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    const auto zipped = std::ranges::find_if(
        grid.zipped, [&](const AxisGroup& group) { return std::ranges::find(group, i) != group.end(); });
    if (zipped == grid.zipped.end()) {
      groups.push_back({i});
    } else if (zipped->front() == i) {
      groups.push_back(*zipped);
    }
  }
  return groups;
}

// Returns the number of values of the shortest axis. Zipped axes of different lengths are reported where they
// are read; expansion goes on to find other mistakes.
std::size_t extent_of(const AxisGroup& group, const Grid& grid) {
  std::size_t extent = grid.axes[group[0]].values.json.size();
  for (const std::size_t axis : group) extent = std::min(extent, grid.axes[axis].values.json.size());
  return extent;
}

// Tells combinations apart. Those with the same values are the same run: those that differ only in axes that
// do not exist in them, and those that two grids have in common.
std::vector<std::string> identity_of(const Combination& combination) {
  std::vector<std::string> texts;
  for (const auto& [axis, number] : combination.values) {
    // Networks of axes have names that differ, so the name represents all of the network.
    const Json& value = axis->values.json[static_cast<std::size_t>(number)];
    const Json shown = axis->path == KeyPath{"network"} ? compared_value(value, axis->path) : value;
    // 1 and 1.0 are one value.
    const std::string text = shown.is_number_float() ? number_text(shown.get<double>()) : shown.dump();
    texts.push_back(fmt::format("{}={}", joined(axis->path), text));
  }
  std::ranges::sort(texts);  // Grids may have their keys in another order.
  return texts;
}

Dimension dimension_of(const Axis& axis) {
  if (axis.range) return *axis.range;
  const Json& values = axis.values.json;
  Dimension choices{.kind = DimensionKind::kChoice, .choices = values.size()};
  choices.ordered = values.size() > 2 && std::ranges::all_of(values, &Json::is_number) &&
                    std::ranges::is_sorted(values, {}, [](const Json& value) { return value.get<double>(); });
  return choices;
}

// The axis of a key, or of what it is part of: "optimizer" for "optimizer.name".
std::size_t axis_of(const KeyPath& path, const Grid& grid) {
  std::size_t found = kNoAxis;
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    const KeyPath& of_axis = grid.axes[i].path;
    if (std::ranges::mismatch(of_axis, path).in1 != of_axis.end()) continue;
    if (found == kNoAxis || of_axis.size() > grid.axes[found].path.size()) found = i;
  }
  return found;
}

// "lr is 0.1 or 0.2".
std::string condition_text(const Condition& condition) {
  std::vector<std::string> values;
  for (const Json& value : condition.values) values.push_back(value.dump());
  return condition.key + " is " + listed(values);
}

// What is at `path` where an axis has this value.
Json value_in(const Json& value, const Axis& axis, const KeyPath& path) {
  if (axis.path == path) return compared_value(value, path);
  Json file = value;
  for (auto part = axis.path.rbegin(); part != axis.path.rend(); ++part) file = Json{{*part, file}};
  const JsonDocument document(std::move(file), axis.place);
  return value_at(JsonView(document), path);
}

}  // namespace

void Space::bind_rules(const JsonView& base) {
  for (Grid& grid : grids_) {
    GridRules& rules = rules_.emplace_back();
    for (Axis& axis : grid.axes) {
      if (axis.range) axis.values.json.push_back(axis.json_at(axis.range->low));
      std::vector<Tests>& conditions = rules.when.emplace_back();
      for (const Rule& rule : when_) {
        if (rule.axis == axis.path) conditions.push_back(tests_of(rule.conditions, grid, base));
      }
    }
    for (const Rule& rule : exclude_) rules.exclude.push_back(tests_of(rule.conditions, grid, base));
  }
}

// Compares values once, not for every combination.
Space::Tests Space::tests_of(const std::vector<Condition>& conditions, const Grid& grid,
                             const JsonView& base) {
  Tests tests;
  for (const Condition& condition : conditions) {
    Test test{.condition = &condition, .axis = axis_of(condition.path, grid)};
    if (test.axis != kNoAxis) {
      const Axis& axis = grid.axes[test.axis];
      for (const Json& value : axis.values.json)
        test.by_value.push_back(is_met(condition, value) ||
                                is_met(condition, value_in(value, axis, condition.path)));
    }
    const Json otherwise = sweep::value_at(base, condition.path);
    test.otherwise = !otherwise.is_null() && is_met(condition, otherwise);
    tests.push_back(std::move(test));
  }
  return tests;
}

// A condition asks for the current value of a key: that of its axis if the axis exists at this point, else
// that of the file.
bool Space::hold(const Tests& tests, std::size_t grid, const SearchPoint& point) const {
  return std::ranges::all_of(tests, [&](const Test& test) {
    if (test.axis == kNoAxis || !is_active(test.axis, grid, point)) return test.otherwise;
    const Axis& axis = grids_[grid].axes[test.axis];
    const double number = *point[test.axis];
    return axis.range ? is_met(*test.condition, axis.json_at(number))
                      : test.by_value[static_cast<std::size_t>(number)];
  });
}

// Whether an axis exists depends on "when" rules, whose conditions may ask for other conditional axes; this
// recursion ends because cyclic rules have been dropped.
bool Space::is_active(std::size_t axis, std::size_t grid, const SearchPoint& point) const {
  return point[axis] && std::ranges::all_of(rules_[grid].when[axis],
                                            [&](const Tests& tests) { return hold(tests, grid, point); });
}

// The first rule that leaves the point out; null if none does.
const Rule* Space::excluding(std::size_t grid, const SearchPoint& point) const {
  const auto& exclude = rules_[grid].exclude;
  const auto found =
      std::ranges::find_if(exclude, [&](const Tests& tests) { return hold(tests, grid, point); });
  return found == exclude.end() ? nullptr : &exclude_[static_cast<std::size_t>(found - exclude.begin())];
}

bool Space::can_hold(const Test& test, std::size_t grid) const {
  if (test.axis == kNoAxis) return test.otherwise;
  const Axis& axis = grids_[grid].axes[test.axis];
  if (test.otherwise && !rules_[grid].when[test.axis].empty()) return true;
  if (!axis.range) return std::ranges::find(test.by_value, true) != test.by_value.end();
  return std::ranges::any_of(test.condition->values, [&](const Json& wanted) {
    const JsonDocument list(wanted.is_array() ? wanted : Json::array({wanted}), axis.place.whole());
    return std::ranges::any_of(JsonView(list).children(), [&](const JsonView& one) {
      return one->is_number() && one.number() >= axis.range->low && one.number() <= axis.range->high;
    });
  });
}

void Space::check_conditions(const JsonPlace& place, const std::vector<Condition>& conditions,
                             const JsonView& base, Problems& problems) const {
  std::vector<Tests> tests_in;  // by grid
  for (const Grid& grid : grids_) tests_in.push_back(tests_of(conditions, grid, base));
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    std::vector<std::string> values;
    bool is_known = true;  // that none meets it
    for (std::size_t grid = 0; grid < tests_in.size(); ++grid) {
      const Test& test = tests_in[grid][c];
      is_known = is_known && !can_hold(test, grid);
      if (test.axis == kNoAxis) continue;
      const Axis& axis = grids_[grid].axes[test.axis];
      is_known = is_known && JsonView(axis.values).place().source == place.source;
      if (axis.range) {
        values.push_back(fmt::format("{} to {}", axis.range->low, axis.range->high));
        continue;
      }
      for (const Json& value : axis.values.json) {
        std::string text = value_in(value, axis, conditions[c].path).dump();
        if (std::ranges::find(values, text) == values.end()) values.push_back(std::move(text));
      }
    }
    if (!is_known || values.empty()) continue;
    problems.add(place, fmt::format("{}, which it never is; want a value of that axis: {}",
                                    condition_text(conditions[c]), listed(values)));
  }
}

void Space::check_rules(const JsonView& base, Problems& problems) const {
  for (const auto* rules : {&exclude_, &when_})
    for (const Rule& rule : *rules) check_conditions(rule.place, rule.conditions, base, problems);
}

std::vector<const Axis*> Space::axes() const {
  std::vector<const Axis*> axes;
  for (const Grid& grid : grids_)
    for (const Axis& axis : grid.axes) axes.push_back(&axis);
  return axes;
}

std::vector<std::string> Space::keys() const {
  std::vector<std::string> keys;
  for (const Axis* axis : axes())
    if (std::ranges::find(keys, axis->key) == keys.end()) keys.push_back(axis->key);
  if (has_repeats()) keys.push_back("repeat");
  return keys;
}

std::vector<Combination> Space::combinations(const JsonView& root, Problems& problems) const {
  std::vector<std::vector<AxisGroup>> groups;     // by grid
  std::vector<std::vector<std::size_t>> extents;  // of each group
  double total = 0;                               // before any rule; may exceed any integer
  for (const Grid& grid : grids_) {
    double product = repeats_;
    extents.emplace_back();
    for (const AxisGroup& group : groups.emplace_back(groups_of(grid))) {
      extents.back().push_back(extent_of(group, grid));
      product *= static_cast<double>(extents.back().back());
    }
    total += product;
  }
  std::vector<Combination> combinations;
  if (total > static_cast<double>(kMaxRuns)) {
    const JsonView params = root.find("params");
    problems.add(params ? params : root,
                 fmt::format("these are {:.0f} runs, want at most {}", total, kMaxRuns));
    return combinations;
  }
  combinations.reserve(static_cast<std::size_t>(total));
  // The values of an axis differ, so that only rules and further grids can make combinations alike.
  const bool can_repeat = grids_.size() > 1 || !when_.empty();
  std::set<std::vector<std::string>> seen;
  for (std::size_t g = 0; g < grids_.size(); ++g) {
    const Grid& grid = grids_[g];
    SearchPoint point(grid.axes.size());
    for_each_product(extents[g], [&](const std::vector<std::size_t>& chosen) {
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        for (const std::size_t axis : groups[g][i]) point[axis] = static_cast<double>(chosen[i]);
      }
      Combination combination;
      for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
        if (is_active(axis, g, point)) combination.values.push_back({&grid.axes[axis], *point[axis]});
      }
      if (can_repeat && !seen.insert(identity_of(combination)).second) return;
      combination.excluded = excluding(g, point);
      for (; combination.repeat < repeats_; ++combination.repeat) combinations.push_back(combination);
    });
  }
  if (!combinations.empty() && std::ranges::all_of(combinations, &Combination::excluded))
    problems.add(root.find("exclude"), "every combination is excluded, want at least one run");
  return combinations;
}

Combination Space::combination_at(const SearchPoint& point) const {
  Combination combination;
  const std::vector<Axis>& axes = grids_.at(0).axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (point[i]) combination.values.push_back({&axes[i], *point[i]});
  }
  return combination;
}

SearchDomain Space::domain_of(const std::shared_ptr<const Space>& self) {
  SearchDomain domain;
  for (const Axis& axis : self->grids_[0].axes) domain.dimensions.push_back(dimension_of(axis));
  if (!self->when_.empty())
    domain.is_active = [self](const SearchPoint& point, std::size_t axis) {
      return self->is_active(axis, 0, point);
    };
  if (!self->exclude_.empty())
    domain.is_allowed = [self](const SearchPoint& point) { return self->excluding(0, point) == nullptr; };
  return domain;
}

Json Axis::json_at(double number) const {
  if (!range) return values.json.at(static_cast<std::size_t>(number));
  if (has_integers(range->kind)) return static_cast<std::int64_t>(std::llround(number));
  return number;
}

JsonDocument Axis::value_at(double number) const {
  if (range) return {json_at(number), place.whole()};
  return JsonDocument(JsonView(values).at(static_cast<std::size_t>(number)));
}

std::string exclusion_reason(const Rule& rule) {
  std::vector<std::string> parts;
  for (const Condition& condition : rule.conditions) parts.push_back(condition_text(condition));
  return fmt::format("{}: {}", to_string(rule.place), fmt::join(parts, " and "));
}

}  // namespace sweep
