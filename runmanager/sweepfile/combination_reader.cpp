#include "runmanager/sweepfile/combination_reader.h"

#include <algorithm>
#include <string_view>

#include "runmanager/config/run_settings.h"
#include "runmanager/sweepfile/command_reader.h"
#include "runmanager/sweepfile/key_path.h"
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
    const ReadContext context;
    const Json nothing = Json::object();
    return parallel_text(parallel_of(complete_parallel({&node, node, nothing, context, ignored})));
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

// The file of a run with nothing but the top-level key `key`; "": with all.
JsonNode CombinationReader::tree_with(const Combination& combination, const std::string& key,
                                      Problems& problems) {
  JsonNode tree;
  tree.kind = JsonKind::kObject;
  tree.location = tree_.location;
  for (const JsonMember& member : tree_.members) {
    if (key.empty() || member.key == key) tree.members.push_back(member);
  }
  std::vector<Assignment> values;
  for (const Assignment& assignment : plain_) {
    if (key.empty() || assignment.path[0] == key) values.push_back(assignment);
  }
  for (const AxisValue& value : combination.values) {
    const Axis& axis = *value.axis;
    if (key.empty() || axis.path[0] == key)
      values.push_back({axis.key, axis.path, axis.location, value.value()});
  }
  return with_values(std::move(tree), std::move(values), files_, problems);
}

// Keys that an axis of the combination changes are completed for each run from now on.
void CombinationReader::note_keys_of(const Combination& combination) {
  for (const AxisValue& value : combination.values) {
    const Setting* setting = find_setting(file_settings(), value.axis->path[0]);
    if (std::ranges::find(swept_, setting) == swept_.end()) swept_.push_back(setting);
  }
}

const CombinationReader::Section& CombinationReader::section_of(const Combination& combination,
                                                                const Setting& setting, Problems& problems) {
  std::vector<Choice> choices;
  for (const AxisValue& value : combination.values) {
    if (value.axis->path[0] == setting.name) choices.emplace_back(value.axis, value.index);
  }
  const auto [found, is_new] = sections_.try_emplace({&setting, std::move(choices)});
  Section& section = found->second;
  if (!is_new) return section;
  const JsonNode tree = tree_with(combination, setting.name, problems);
  const Json none = Json::object();
  section.json = std::make_shared<const Json>(
      complete_value(setting, {tree.find(setting.name), tree, none, context_, problems}));
  section.put = problems.empty() ? read_setting(setting.name, *section.json) : [](RunConfig&) {};
  return section;
}

std::optional<std::string> CombinationReader::place_of(const Combination& combination,
                                                       const std::string& path) {
  Problems ignored;
  const KeyPath parts = key_path(path);
  const JsonNode tree = tree_with(combination, parts[0], ignored);
  const JsonNode* node = find_path(tree, parts);
  return node != nullptr && node->location != nullptr ? std::optional(to_string(*node->location))
                                                      : std::nullopt;
}

// Every parameter is the program's; the rest is read once.
RunConfig CombinationReader::read_command_run(const Combination& combination, Problems& problems) {
  if (!common_) common_ = read_command_config(tree_, problems);
  RunConfig config = *common_;
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  Json params = Json::object();
  for (const AxisValue& value : combination.values) {
    params[value.axis->key] = to_json(value.value());
    if (value.axis->key == "device") config.device = value.value().text;
  }
  config.resolved["params"] = std::move(params);
  config.resolved["repeat"] = config.repeat;
  return config;
}

RunConfig CombinationReader::read(const Combination& combination, Problems& problems) {
  if (is_command_file(tree_)) return read_command_run(combination, problems);
  note_keys_of(combination);
  if (!common_) common_ = read_run_config(tree_with(combination, "", problems), context_, problems);
  RunConfig config = *common_;
  for (const Setting* setting : swept_) {
    const Section& section = section_of(combination, *setting, problems);
    section.put(config);
    config.resolved.set(setting->name, section.json);
  }
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  while (repeats_.size() <= config.repeat) repeats_.push_back(std::make_shared<const Json>(repeats_.size()));
  config.resolved.set("repeat", repeats_[config.repeat]);
  config.where = [self = shared_from_this(), combination](const std::string& path) {
    return self->place_of(combination, path);
  };
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
