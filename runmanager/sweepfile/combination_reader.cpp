#include "runmanager/sweepfile/combination_reader.h"

#include <algorithm>
#include <string_view>

#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/parallel_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kAnyValue = static_cast<std::size_t>(-1);

ParamValue param_of(const JsonNode& node, const KeyPath& path) {
  if (path == KeyPath{"network"}) {
    const JsonNode* name = node.find("name");
    if (name != nullptr && name->is(JsonKind::kString)) return name->text;
  }
  if (path == KeyPath{"parallel"}) {
    Problems ignored;  // Those of the file are found when the run is read.
    JsonNode tree;
    tree.kind = JsonKind::kObject;
    tree.members.push_back({"parallel", node.location, node});
    return parallel_text(read_parallel(tree, ignored));
  }
  if (node.is(JsonKind::kBoolean)) return node.boolean;
  if (node.is(JsonKind::kString)) return node.text;
  if (!node.is_number()) return to_json(node).dump();
  // A learning rate of 1 is a number, not an integer: the key's type decides, not how the value is written.
  const std::optional<Setting> setting = setting_at(path);
  const bool is_double = node.is(JsonKind::kNumber) || (setting && setting->kind == ArgumentKind::kNumber);
  if (is_double) return node.number;
  return node.integer;
}

// The key as for_each_simple_key() has it, which lives as long as the program; null if it is none of them.
const char* simple_key(const KeyPath& path) {
  const char* found = nullptr;
  RunConfig any;
  for_each_simple_key(any, [&](const char* key, auto&) {
    if (path.size() == 1 && path[0] == key) found = key;
  });
  return found;
}

}  // namespace

JsonNode with_values(JsonNode tree, std::vector<Assignment> values, NetworkFiles& files, Problems& problems) {
  std::stable_sort(values.begin(), values.end(),
                   [](const Assignment& a, const Assignment& b) { return a.path.size() < b.path.size(); });
  std::size_t i = 0;
  for (; i < values.size() && values[i].path.size() == 1; ++i) {
    set_value(tree, values[i].path, values[i].value, values[i].location, problems);
  }
  files.load(tree, problems);
  const JsonNode* network = tree.find("network");
  const bool network_failed = network == nullptr || network->is(JsonKind::kNull);
  for (; i < values.size(); ++i) {
    if (network_failed && values[i].path[0] == "network") continue;  // Reported by files.load().
    set_value(tree, values[i].path, values[i].value, values[i].location, problems);
  }
  return tree;
}

CombinationReader::AxisInfo& CombinationReader::info_of(const Axis& axis) {
  const auto [found, is_new] = axes_.try_emplace(&axis);
  AxisInfo& info = found->second;
  if (info.params.size() < axis.values.size()) {  // A search adds the values that it draws.
    info.params.resize(axis.values.size());
    info.simple.resize(axis.values.size());
  }
  if (!is_new) return info;
  if (const char* key = simple_key(axis.path)) {
    info.kind = AxisKind::kSimple;
    info.key = key;
    return info;
  }
  for (const RunPart& part : run_parts()) {
    if (axis.path[0] != part.key) continue;
    info.kind = AxisKind::kPart;
    info.key = part.key;
    info.part = &part;
  }
  return info;
}

// What sets values at or below the top-level key `key`: the command line, then the combination. Null: of all
// keys.
std::vector<Assignment> CombinationReader::values_of(const Combination& combination, const char* key) const {
  std::vector<Assignment> values;
  for (const Assignment& assignment : plain_) {
    if (key == nullptr || assignment.path[0] == key) values.push_back(assignment);
  }
  for (const AxisValue& value : combination.values) {
    const Axis& axis = *value.axis;
    if (key == nullptr || axis.path[0] == key)
      values.push_back({axis.key, axis.path, axis.location, value.value()});
  }
  return values;
}

// The file with nothing but the top-level key `key`.
JsonNode CombinationReader::tree_of(const char* key) const {
  JsonNode tree;
  tree.kind = JsonKind::kObject;
  tree.location = tree_.location;
  if (const JsonMember* member = tree_.find_member(key)) tree.members.push_back(*member);
  return tree;
}

const CombinationReader::Group& CombinationReader::group_of(const Combination& combination) {
  key_.clear();
  for (const AxisValue& value : combination.values)
    key_.emplace_back(value.axis, info_of(*value.axis).kind == AxisKind::kOther ? value.index : kAnyValue);
  if (last_group_key_ != nullptr && key_ == *last_group_key_) return *last_group_;
  const auto [found, is_new] = groups_.try_emplace(key_);
  if (is_new) {
    RunConfig& config = found->second.config;
    config = read_run_config(with_values(tree_, values_of(combination, nullptr), files_, problems_), context_,
                             problems_);
    // What is wrong cannot be resolved, and is never asked for.
    if (problems_.empty()) found->second.resolved = std::make_shared<const Json>(resolved_json(config));
  }
  last_group_key_ = &found->first;
  last_group_ = &found->second;
  return found->second;
}

const CombinationReader::PartValue& CombinationReader::simple_value(const AxisValue& value, AxisInfo& info) {
  std::optional<PartValue>& known = info.simple[value.index];
  if (known) return *known;
  JsonNode tree = tree_of("");
  tree.members.push_back({info.key, value.axis->location, value.value()});
  known.emplace();
  known->simple = read_simple_value(tree, info.key, context_, problems_);
  RunConfig config;
  set_simple_value(config, info.key, known->simple);
  known->json = std::make_shared<const Json>(simple_value_json(config, info.key));
  known->origins = std::make_shared<const Origins::Locations>(origins_of(tree));
  return *known;
}

const CombinationReader::PartValue& CombinationReader::part_value(const Combination& combination,
                                                                  const RunPart& part) {
  key_.clear();
  for (const AxisValue& value : combination.values) {
    if (info_of(*value.axis).part == &part) key_.emplace_back(value.axis, value.index);
  }
  const auto [found, is_new] = parts_.try_emplace(key_);
  PartValue& value = found->second;
  if (!is_new) return value;
  const JsonNode tree = with_values(tree_of(part.key), values_of(combination, part.key), files_, problems_);
  RunConfig config;
  part.read(tree, context_, problems_, config);
  if (problems_.empty()) value.json = std::make_shared<const Json>(part.json(config));
  value.origins = std::make_shared<const Origins::Locations>(origins_of(tree));
  value.config = std::make_shared<const RunConfig>(std::move(config));
  return value;
}

RunConfig CombinationReader::read(const Combination& combination) {
  const Group& group = group_of(combination);
  RunConfig config = group.config;
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  std::vector<ResolvedSettings::Part> resolved;
  std::vector<Origins::Part> origins;
  resolved.reserve(combination.values.size() + 1);
  origins.reserve(combination.values.size());
  const RunPart* previous = nullptr;
  for (const AxisValue& axis_value : combination.values) {
    AxisInfo& info = info_of(*axis_value.axis);
    if (info.kind == AxisKind::kOther || (info.part != nullptr && info.part == previous)) continue;
    previous = info.part;
    const bool is_simple = info.kind == AxisKind::kSimple;
    const PartValue& value = is_simple ? simple_value(axis_value, info) : part_value(combination, *info.part);
    if (is_simple)
      set_simple_value(config, info.key, value.simple);
    else
      info.part->copy(*value.config, config);
    resolved.emplace_back(info.key, value.json);
    origins.emplace_back(info.key, value.origins);
  }
  if (combination.repeat > 0) {
    while (repeats_.size() <= config.repeat)
      repeats_.push_back(std::make_shared<const Json>(static_cast<std::uint32_t>(repeats_.size())));
    resolved.emplace_back("repeat", repeats_[config.repeat]);
  }
  config.resolved = ResolvedSettings(group.resolved, std::move(resolved));
  config.origins = Origins(group.config.origins.common(), std::move(origins));
  // Layers that name their devices say what kind of device the run needs.
  if (config.device == "auto" && !config.parallel.model.empty())
    config.device =
        config.parallel.model.front().device.substr(0, config.parallel.model.front().device.find(':'));
  return config;
}

Params CombinationReader::params_of(const Combination& combination, bool repeats) {
  Params params;
  params.reserve(combination.values.size() + (repeats ? 1 : 0));
  for (const AxisValue& value : combination.values) {
    std::optional<ParamValue>& param = info_of(*value.axis).params[value.index];
    if (!param) param = param_of(value.value(), value.axis->path);
    params.emplace_back(value.axis->key, *param);
  }
  if (repeats) params.emplace_back(kRepeatKey, static_cast<std::int64_t>(combination.repeat));
  return params;
}

}  // namespace sweep
