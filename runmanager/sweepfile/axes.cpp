#include "runmanager/sweepfile/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sweep {
namespace {

// The keys of a file with a "command" are those of its program.
std::optional<KeyPath> path_of(const std::string& key, const JsonLocation& location, bool any_key,
                               Problems& problems) {
  return any_key ? program_parameter(key) : resolve_key(key, location, true, problems);
}

std::vector<Axis> read_axes(const JsonNode& object, bool any_key, Problems& problems) {
  std::vector<Axis> axes;
  if (!object.is(JsonKind::kObject)) {
    problems.add_value(object, "an object: keys, each with a list of values to try");
    return axes;
  }
  for (const JsonMember& member : object.members) {
    std::optional<Dimension> range;
    std::vector<JsonNode> values;
    if (is_axis_range(member.value))
      range = axis_range(member.value, problems);
    else
      values = axis_values(member.value, problems);
    std::optional<KeyPath> path = path_of(member.key, *member.key_location, any_key, problems);
    if (!path || (values.empty() && !range)) continue;
    const auto duplicate =
        std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.path == *path; });
    if (duplicate != axes.end()) {
      problems.add(*member.key_location, fmt::format("{} is the same key as {}, want one of them",
                                                     in_quotes(member.key), in_quotes(duplicate->key)));
      continue;
    }
    axes.push_back({member.key, std::move(*path), member.key_location, std::move(values), range});
  }
  return axes;
}

// Returns the axes of "params" and of one grid together. An axis of the grid replaces that of the same key in
// its position, so that the order of keys (and with it the names of runs) stays that of "params".
std::vector<Axis> merged(std::vector<Axis> base, std::vector<Axis> more) {
  for (Axis& axis : more) {
    const auto same =
        std::find_if(base.begin(), base.end(), [&](const Axis& b) { return b.path == axis.path; });
    if (same != base.end()) {
      *same = std::move(axis);
    } else {
      base.push_back(std::move(axis));
    }
  }
  return base;
}

std::vector<Grid> read_grids(const JsonNode& root, bool any_key, Problems& problems) {
  std::vector<Axis> base;
  if (const JsonNode* params = root.find("params")) base = read_axes(*params, any_key, problems);
  const JsonNode* list = root.find("grids");
  if (list == nullptr) return {Grid{std::move(base), {}}};
  std::vector<Grid> grids;
  if (!list->is(JsonKind::kArray) || list->elements.empty()) {
    problems.add_value(*list, "a list of objects, each like \"params\"");
  } else {
    for (const JsonNode& element : list->elements)
      grids.push_back({merged(base, read_axes(element, any_key, problems)), {}});
  }
  if (grids.empty()) grids.push_back({std::move(base), {}});
  return grids;
}

bool has_axis(const std::vector<Grid>& grids, const KeyPath& path) {
  return std::any_of(grids.begin(), grids.end(), [&](const Grid& grid) {
    return std::any_of(grid.axes.begin(), grid.axes.end(),
                       [&](const Axis& axis) { return axis.path == path; });
  });
}

std::vector<std::string> axis_keys(const std::vector<Grid>& grids) {
  std::vector<std::string> keys;
  for (const Grid& grid : grids) {
    for (const Axis& axis : grid.axes) {
      if (std::find(keys.begin(), keys.end(), axis.key) == keys.end()) keys.push_back(axis.key);
    }
  }
  return keys;
}

// Resolves the key of an axis of any grid; adds a problem and returns nothing if there is no such axis.
std::optional<KeyPath> resolve_axis(const std::string& key, const JsonLocation& location,
                                    const std::vector<Grid>& grids, bool any_key, Problems& problems) {
  std::optional<KeyPath> path = path_of(key, location, any_key, problems);
  if (!path || has_axis(grids, *path)) return path;
  const std::vector<std::string> keys = axis_keys(grids);
  problems.add(location, fmt::format("{} is no axis, want one of: {}{}", in_quotes(key),
                                     fmt::join(keys, ", "), suggestion(key, keys)));
  return std::nullopt;
}

void check_zip_lengths(const JsonNode& group, const std::vector<std::size_t>& indices, const Grid& grid,
                       Problems& problems) {
  for (const std::size_t index : indices) {
    const Axis &first = grid.axes[indices[0]], &other = grid.axes[index];
    if (other.values.size() == first.values.size()) continue;
    problems.add(*group.location,
                 fmt::format("{} has {} values and {} has {}, want as many of both", in_quotes(first.key),
                             first.values.size(), in_quotes(other.key), other.values.size()));
  }
}

// Zips those axes of the group that `grid` has. A grid may have none of them, or one, which then moves alone.
void add_zip_group(const JsonNode& group, const std::vector<KeyPath>& paths, Grid& grid, Problems& problems) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < grid.axes.size(); ++i) {
    if (std::find(paths.begin(), paths.end(), grid.axes[i].path) != paths.end()) indices.push_back(i);
  }
  if (indices.size() < 2) return;
  check_zip_lengths(group, indices, grid, problems);
  grid.zipped.push_back(std::move(indices));
}

void read_zip(const JsonNode& root, std::vector<Grid>& grids, bool any_key, Problems& problems) {
  const JsonNode* zip = root.find("zip");
  if (zip == nullptr) return;
  constexpr std::string_view kAllowed = "a list of lists of keys, such as [[\"lr\", \"batch_size\"]]";
  if (!zip->is(JsonKind::kArray)) return problems.add_value(*zip, kAllowed);
  std::set<KeyPath> used;
  for (const JsonNode& group : zip->elements) {
    if (!group.is(JsonKind::kArray) || group.elements.size() < 2) {
      problems.add_value(group, "a list of at least two keys");
      continue;
    }
    std::vector<KeyPath> paths;
    for (const JsonNode& key : group.elements) {
      if (!key.is(JsonKind::kString)) {
        problems.add_value(key, "the key of an axis, a string");
        continue;
      }
      std::optional<KeyPath> path = resolve_axis(key.text, *key.location, grids, any_key, problems);
      if (!path) continue;
      if (!used.insert(*path).second)
        problems.add(*key.location, fmt::format("{} is zipped twice", in_quotes(key.text)));
      paths.push_back(std::move(*path));
    }
    for (Grid& grid : grids) add_zip_group(group, paths, grid, problems);
  }
}

// What a condition on a key asks for: the given value, or one of a list of values. A list that is a value of
// the key stays one, which is_met() takes for its elements as well.
std::vector<JsonNode> read_wanted_values(const JsonNode& node, const std::optional<Setting>& setting,
                                         Problems& problems) {
  if (!node.is(JsonKind::kArray)) return {node};
  if (node.elements.empty()) problems.add_value(node, "at least one value");
  const bool has_lists = std::all_of(node.elements.begin(), node.elements.end(),
                                     [](const JsonNode& element) { return element.is(JsonKind::kArray); });
  const bool only_lists =
      setting && (setting->kind == ArgumentKind::kNumberPair || setting->kind == ArgumentKind::kNumberList);
  Problems ignored;
  const bool is_value =
      !setting || only_lists || (takes_list(*setting) && check_value(node, *setting, ignored));
  return is_value && !has_lists ? std::vector<JsonNode>{node} : node.elements;
}

std::vector<Condition> read_conditions(const JsonNode& object, bool any_key, Problems& problems) {
  std::vector<Condition> conditions;
  if (!object.is(JsonKind::kObject) || object.members.empty()) {
    problems.add_value(object, "an object: keys, each with a value or a list of values");
    return conditions;
  }
  for (const JsonMember& member : object.members) {
    std::optional<KeyPath> path = path_of(member.key, *member.key_location, any_key, problems);
    if (!path) continue;
    const std::optional<Setting> setting = setting_at(*path);
    std::vector<JsonNode> values = read_wanted_values(member.value, setting, problems);
    // A condition with a mistyped value would never hold, without a word.
    for (const JsonNode& value : values) {
      if (setting) check_value(value, *setting, problems);
    }
    conditions.push_back({member.key, std::move(*path), std::move(values)});
  }
  return conditions;
}

std::vector<ExcludeRule> read_exclude(const JsonNode& root, bool any_key, Problems& problems) {
  std::vector<ExcludeRule> rules;
  const JsonNode* list = root.find("exclude");
  if (list == nullptr) return rules;
  if (!list->is(JsonKind::kArray)) {
    problems.add_value(*list, "a list of objects, such as [{\"device\": \"cpu\", \"batch_size\": 20000}]");
    return rules;
  }
  for (const JsonNode& element : list->elements) {
    rules.push_back({element.location, read_conditions(element, any_key, problems)});
    if (rules.back().conditions.empty()) rules.pop_back();  // Reported; it would leave out everything.
  }
  return rules;
}

std::vector<WhenRule> read_when(const JsonNode& root, const std::vector<Grid>& grids, bool any_key,
                                Problems& problems) {
  std::vector<WhenRule> rules;
  const JsonNode* object = root.find("when");
  if (object == nullptr) return rules;
  if (!object->is(JsonKind::kObject)) {
    problems.add_value(*object, "an object, such as {\"momentum\": {\"optimizer\": \"sgd\"}}");
    return rules;
  }
  for (const JsonMember& member : object->members) {
    std::vector<Condition> conditions = read_conditions(member.value, any_key, problems);
    std::optional<KeyPath> path = resolve_axis(member.key, *member.key_location, grids, any_key, problems);
    if (path) rules.push_back({std::move(*path), member.key_location, std::move(conditions)});
  }
  return rules;
}

// Reports axes whose conditions depend on the axis itself, through any number of other rules, and drops all
// rules then: GridRules::is_active() recurses through them and would not end. The search walks the graph
// "rule -> keys of its conditions -> rules of those keys" from each rule; files have a handful of rules.
void check_cycles(std::vector<WhenRule>& rules, Problems& problems) {
  const auto depends = [&](const WhenRule& from, const KeyPath& target) {
    std::set<KeyPath> reached;
    std::vector<const WhenRule*> pending = {&from};
    while (!pending.empty()) {
      const WhenRule* rule = pending.back();
      pending.pop_back();
      for (const Condition& condition : rule->conditions) {
        if (!reached.insert(condition.path).second) continue;
        for (const WhenRule& next : rules) {
          if (next.path == condition.path) pending.push_back(&next);
        }
      }
    }
    return reached.count(target) > 0;
  };
  const bool cyclic =
      std::any_of(rules.begin(), rules.end(), [&](const WhenRule& r) { return depends(r, r.path); });
  for (const WhenRule& rule : rules) {
    if (depends(rule, rule.path))
      problems.add(*rule.location, "this axis depends on itself, want conditions on other keys");
  }
  if (cyclic) rules.clear();
}

}  // namespace

const JsonNode& compared_value(const JsonNode& value, const KeyPath& path) {
  const JsonNode* name = path.size() == 1 ? value.find("name") : nullptr;
  return name != nullptr ? *name : value;
}

bool is_met(const Condition& condition, const JsonNode& value) {
  const auto is_value = [&value](const JsonNode& wanted) { return same_value(value, wanted); };
  return std::any_of(condition.values.begin(), condition.values.end(), [&](const JsonNode& wanted) {
    return is_value(wanted) || std::any_of(wanted.elements.begin(), wanted.elements.end(), is_value);
  });
}

SearchSpace read_search_space(const JsonNode& root, Problems& problems) {
  SearchSpace space;
  const bool any_key = is_command_file(root);
  space.grids = read_grids(root, any_key, problems);
  read_zip(root, space.grids, any_key, problems);
  space.exclude = read_exclude(root, any_key, problems);
  space.when = read_when(root, space.grids, any_key, problems);
  check_cycles(space.when, problems);
  const Setting& repeats = *find_setting(file_settings(), "repeats");
  space.repeats = complete_value(repeats, {root.find("repeats"), root, {}, {}, problems}).get<int>();
  return space;
}

}  // namespace sweep
