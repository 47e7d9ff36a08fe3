#include "runmanager/sweepfile/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runmanager/config/params.h"

namespace sweep {

using Json = nlohmann::ordered_json;

namespace {

std::vector<Axis> read_axes(const JsonView& object, KeyUse use, Problems& problems) {
  std::vector<Axis> axes;
  if (!object->is_object()) {
    problems.add_value(object, "an object: keys, each with a list of values to try");
    return axes;
  }
  for (const JsonView& member : object.children()) {
    Axis axis = read_axis(member, problems);
    for (const JsonView& value : JsonView(axis.values).children())
      if (use == KeyUse::kParameter && value.text().find('\0') != std::string::npos)
        problems.add(value, "has the character NUL, which no word of a command line can have");
    std::optional<KeyPath> path = resolve_key(axis.key, axis.place, use, problems);
    if (!path || (axis.values.json.empty() && !axis.range)) continue;
    axis.path = std::move(*path);
    if (const auto same = std::ranges::find(axes, axis.path, &Axis::path); same != axes.end())
      problems.add(axis.place, fmt::format("{} is the same key as {}, want one of them", in_quotes(axis.key),
                                           in_quotes(same->key)));
    else
      axes.push_back(std::move(axis));
  }
  return axes;
}

// Returns the axes of "params" and of one grid together. An axis of the grid replaces that of the same key in
// its position, so that the order of keys (and with it the names of runs) stays that of "params".
std::vector<Axis> merged(std::vector<Axis> base, std::vector<Axis> more) {
  for (Axis& axis : more) {
    const auto same = std::ranges::find(base, axis.path, &Axis::path);
    if (same != base.end())
      *same = std::move(axis);
    else
      base.push_back(std::move(axis));
  }
  return base;
}

std::vector<Grid> read_grids(const JsonView& root, KeyUse use, Problems& problems) {
  std::vector<Axis> base;
  if (const JsonView params = root.find("params")) base = read_axes(params, use, problems);
  const JsonView list = root.find("grids");
  if (!list) return {Grid{std::move(base), {}}};
  std::vector<Grid> grids;
  if (!list->is_array() || list->empty()) {
    problems.add_value(list, "a list of objects, each like \"params\"");
  } else {
    for (const JsonView& element : list.children())
      grids.push_back({merged(base, read_axes(element, use, problems)), {}});
  }
  if (grids.empty()) grids.push_back({std::move(base), {}});
  return grids;
}

// Resolves the key of an axis of any grid; adds a problem and returns nothing if there is no such axis.
std::optional<KeyPath> resolve_axis(const std::string& key, const JsonPlace& place,
                                    const std::vector<Grid>& grids, KeyUse use, Problems& problems) {
  std::optional<KeyPath> path = resolve_key(key, place, use, problems);
  if (!path) return path;
  std::vector<std::string> keys;
  for (const Grid& grid : grids) {
    for (const Axis& axis : grid.axes) {
      if (axis.path == *path) return path;
      if (std::ranges::find(keys, axis.key) == keys.end()) keys.push_back(axis.key);
    }
  }
  problems.add(place, fmt::format("{} is no axis, want one of: {}{}", in_quotes(key), fmt::join(keys, ", "),
                                  suggestion(key, keys)));
  return std::nullopt;
}

void check_zip_lengths(const JsonView& group, const std::vector<std::size_t>& indices, const Grid& grid,
                       Problems& problems) {
  for (const std::size_t index : indices) {
    const Axis &first = grid.axes[indices[0]], &other = grid.axes[index];
    if (other.values.json.size() == first.values.json.size()) continue;
    problems.add(group,
                 fmt::format("{} has {} values and {} has {}, want as many of both", in_quotes(first.key),
                             first.values.json.size(), in_quotes(other.key), other.values.json.size()));
  }
}

// Zips those axes of the group that `grid` has. A grid may have none of them, or one, which then moves alone.
void add_zip_group(const JsonView& group, const std::vector<KeyPath>& paths, Grid& grid, Problems& problems) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    if (std::ranges::find(paths, grid.axes[i].path) != paths.end()) indices.push_back(i);
  }
  if (indices.size() < 2) return;
  check_zip_lengths(group, indices, grid, problems);
  grid.zipped.push_back(std::move(indices));
}

void read_zip(const JsonView& root, std::vector<Grid>& grids, KeyUse use, Problems& problems) {
  const JsonView zip = root.find("zip");
  if (!zip) return;
  constexpr std::string_view kAllowed = "a list of lists of keys, such as [[\"lr\", \"batch_size\"]]";
  if (!zip->is_array()) return problems.add_value(zip, kAllowed);
  std::set<KeyPath> used;
  for (const JsonView& group : zip.children()) {
    if (!group->is_array() || group->size() < 2) {
      problems.add_value(group, "a list of at least two keys");
      continue;
    }
    std::vector<KeyPath> paths;
    for (const JsonView& key : group.children()) {
      if (!key->is_string()) {
        problems.add_value(key, "the key of an axis, a string");
        continue;
      }
      std::optional<KeyPath> path = resolve_axis(key.text(), key.place(), grids, use, problems);
      if (!path) continue;
      if (!used.insert(*path).second)
        problems.add(key, fmt::format("{} is zipped twice", in_quotes(key.text())));
      paths.push_back(std::move(*path));
    }
    for (Grid& grid : grids) add_zip_group(group, paths, grid, problems);
  }
}

// What a condition on a key asks for: the given value, or one of a list of values. A list that is a value of
// the key stays one, which is_met() takes for its elements as well.
std::vector<JsonView> read_wanted_values(const JsonView& node, const std::optional<Setting>& setting,
                                         Problems& problems) {
  if (!node->is_array()) return {node};
  if (node->empty()) problems.add_value(node, "at least one value");
  const bool has_lists = std::ranges::all_of(*node, &Json::is_array);
  const bool only_lists =
      setting && (setting->kind == ArgumentKind::kNumberPair || setting->kind == ArgumentKind::kNumberList);
  Problems ignored;
  const bool is_value =
      !setting || only_lists || (takes_list(*setting) && check_value(node, *setting, ignored));
  return is_value && !has_lists ? std::vector<JsonView>{node} : node.children();
}

// A condition on a key of a program that is no axis would never hold.
std::vector<Condition> read_conditions(const JsonView& object, const std::vector<Grid>& grids, KeyUse use,
                                       Problems& problems) {
  std::vector<Condition> conditions;
  if (!object->is_object() || object->empty()) {
    problems.add_value(object, "an object: keys, each with a value or a list of values");
    return conditions;
  }
  for (const JsonView& member : object.children()) {
    std::optional<KeyPath> path = use == KeyUse::kParameter
                                      ? resolve_axis(member.key(), member.key_place(), grids, use, problems)
                                      : resolve_key(member.key(), member.key_place(), use, problems);
    if (!path) continue;
    const std::optional<Setting> setting = setting_at(*path);
    const bool is_argument = use == KeyUse::kAxis && path->size() == 2 && (*path)[0] != "network";
    if (is_argument && !setting && (*path)[1] != "name") {
      problems.add(member.key_place(),
                   fmt::format("{} has no {}", in_quotes((*path)[0]), in_quotes((*path)[1])));
      continue;
    }
    Condition condition{member.key(), std::move(*path), {}};
    for (const JsonView& value : read_wanted_values(member, setting, problems)) {
      // A condition with a mistyped value would never hold, without a word.
      if (setting) check_value(value, *setting, problems);
      condition.values.push_back(*value);
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

// The rules of "exclude", a list, or of "when", an object whose keys are axes.
std::vector<Rule> read_rules(const JsonView& root, const std::string& key, const std::vector<Grid>& grids,
                             KeyUse use, Problems& problems) {
  std::vector<Rule> rules;
  const JsonView node = root.find(key);
  const bool of_axes = key == "when";
  if (!node) return rules;
  if (of_axes ? !node->is_object() : !node->is_array()) {
    problems.add_value(node, of_axes
                                 ? R"(an object, such as {"momentum": {"optimizer": "sgd"}})"
                                 : R"(a list of objects, such as [{"device": "cpu", "batch_size": 20000}])");
    return rules;
  }
  for (const JsonView& child : node.children()) {
    Rule rule{of_axes ? child.key_place() : child.place(), read_conditions(child, grids, use, problems)};
    if (of_axes) {
      const std::optional<KeyPath> path = resolve_axis(child.key(), rule.place, grids, use, problems);
      if (!path) continue;
      rule.axis = *path;
    } else if (rule.conditions.empty()) {
      continue;  // Reported; it would leave out everything.
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

// Reports axes whose conditions depend on the axis itself, through any number of other rules, and drops all
// rules then: Space::is_active() recurses through them and would not end. The search walks the graph
// "rule -> keys of its conditions -> rules of those keys" from each rule; files have a handful of rules.
void check_cycles(std::vector<Rule>& rules, Problems& problems) {
  const auto depends_on_itself = [&rules](const Rule& rule) {
    std::set<KeyPath> reached;
    std::vector<const Rule*> pending = {&rule};
    while (!pending.empty()) {
      const Rule* from = pending.back();
      pending.pop_back();
      for (const Condition& condition : from->conditions) {
        if (!reached.insert(condition.path).second) continue;
        for (const Rule& next : rules) {
          if (next.axis == condition.path) pending.push_back(&next);
        }
      }
    }
    return reached.contains(rule.axis);
  };
  bool is_cyclic = false;
  for (const Rule& rule : rules) {
    if (!depends_on_itself(rule)) continue;
    is_cyclic = true;
    problems.add(rule.place, "this axis depends on itself, want conditions on other keys");
  }
  if (is_cyclic) rules.clear();
}

}  // namespace

bool is_met(const Condition& condition, const Json& value) {
  const auto is_value = [&value](const Json& wanted) { return same_value(value, wanted); };
  return std::ranges::any_of(condition.values, [&](const Json& wanted) {
    return is_value(wanted) || (wanted.is_array() && std::ranges::any_of(wanted, is_value));
  });
}

void each_axes(JsonDocument& root, const std::function<void(Json& axes, const KeyPath& at)>& use) {
  if (Json& file = root.json; file.contains("params") && file["params"].is_object())
    use(file["params"], {"params"});
  if (!root.json.contains("grids")) return;
  for (auto& [index, grid] : root.json["grids"].items()) {
    if (grid.is_object()) use(grid, {"grids", index});
  }
}

Space::Space(const JsonView& file, Problems& problems) {
  const KeyUse use = is_command_file(file) ? KeyUse::kParameter : KeyUse::kAxis;
  grids_ = read_grids(file, use, problems);
  read_zip(file, grids_, use, problems);
  exclude_ = read_rules(file, "exclude", grids_, use, problems);
  when_ = read_rules(file, "when", grids_, use, problems);
  check_cycles(when_, problems);
  const Setting& repeats = *find_setting(top_level_settings(), "repeats");
  repeats_ = complete_value(repeats, {file.find("repeats"), file, {}, {}, problems}).get<int>();
  for (const Axis* axis : axes())
    if (has_repeats() && axis->key == kRepeatKey)
      problems.add(axis->place, "is the number of a repeat, want another name, or no \"repeats\"");
  bind_rules(file);
}

}  // namespace sweep
