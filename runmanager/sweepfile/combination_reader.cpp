#include "runmanager/sweepfile/combination_reader.h"

#include <algorithm>
#include <string_view>

#include "runmanager/sweepfile/command_reader.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/parallel_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

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

// Keys that an axis of the combination changes are read for each run from now on.
void CombinationReader::note_keys_of(const Combination& combination) {
  for (const AxisValue& value : combination.values) {
    const auto part = std::ranges::find_if(
        run_parts(), [&](const RunPart& candidate) { return value.axis->path[0] == candidate.key; });
    if (part != run_parts().end() && std::ranges::find(swept_, &*part) == swept_.end())
      swept_.push_back(&*part);
  }
}

void CombinationReader::read_common(const Combination& combination) {
  common_ = read_run_config(with_values(tree_, values_of(combination, nullptr), files_, problems_), context_,
                            problems_);
  // What is wrong cannot be resolved, and is never asked for.
  if (problems_.empty()) common_json_ = std::make_shared<const Json>(resolved_json(*common_));
}

const CombinationReader::PartValue& CombinationReader::part_value(const Combination& combination,
                                                                  const RunPart& part) {
  std::vector<Choice> choices;
  for (const AxisValue& value : combination.values) {
    if (value.axis->path[0] == part.key) choices.emplace_back(value.axis, value.index);
  }
  const auto [found, is_new] = parts_.try_emplace({&part, std::move(choices)});
  PartValue& value = found->second;
  if (!is_new) return value;
  const JsonNode tree = with_values(tree_of(part.key), values_of(combination, part.key), files_, problems_);
  value.put = part.read(tree, context_, problems_);
  value.origins = std::make_shared<const Origins::Locations>(origins_of(tree));
  if (!problems_.empty()) return value;
  RunConfig config;
  value.put(config);
  value.json = std::make_shared<const Json>(part.json(config));
  return value;
}

// Every parameter is the program's; the rest is read once.
RunConfig CombinationReader::read_command_run(const Combination& combination) {
  if (!common_) {
    common_ = read_command_config(tree_, problems_);
    common_json_ = std::make_shared<const Json>(common_->resolved.json());
  }
  RunConfig config = *common_;
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  Json params = Json::object();
  for (const AxisValue& value : combination.values) {
    params[value.axis->key] = to_json(value.value());
    if (value.axis->key == "device") config.device = value.value().text;
  }
  config.resolved =
      ResolvedSettings(common_json_, {{"params", std::make_shared<const Json>(std::move(params))},
                                      {"repeat", std::make_shared<const Json>(config.repeat)}});
  return config;
}

RunConfig CombinationReader::read(const Combination& combination) {
  if (is_command_file(tree_)) return read_command_run(combination);
  note_keys_of(combination);
  if (!common_) read_common(combination);
  RunConfig config = *common_;
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  std::vector<ResolvedSettings::Part> resolved;
  std::vector<Origins::Part> origins;
  resolved.reserve(swept_.size() + 1);
  origins.reserve(swept_.size());
  for (const RunPart* part : swept_) {
    const PartValue& value = part_value(combination, *part);
    value.put(config);
    resolved.emplace_back(part->key, value.json);
    origins.emplace_back(part->key, value.origins);
  }
  if (combination.repeat > 0) {
    while (repeats_.size() <= config.repeat)
      repeats_.push_back(std::make_shared<const Json>(static_cast<std::uint32_t>(repeats_.size())));
    resolved.emplace_back("repeat", repeats_[config.repeat]);
  }
  config.resolved = ResolvedSettings(common_json_, std::move(resolved));
  config.origins = Origins(common_->origins.common(), std::move(origins));
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
    std::vector<std::optional<ParamValue>>& known = params_[value.axis];
    // A search adds the values that it draws.
    if (known.size() < value.axis->values.size()) known.resize(value.axis->values.size());
    std::optional<ParamValue>& param = known[value.index];
    if (!param) param = param_of(value.value(), value.axis->path);
    params.emplace_back(value.axis->key, *param);
  }
  if (repeats) params.emplace_back(kRepeatKey, static_cast<std::int64_t>(combination.repeat));
  return params;
}

}  // namespace sweep
