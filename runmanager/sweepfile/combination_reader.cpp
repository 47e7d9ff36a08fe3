#include "runmanager/sweepfile/combination_reader.h"

#include <algorithm>
#include <string_view>

#include "runmanager/config/run_settings.h"
#include "runmanager/sweepfile/command_reader.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
using Json = nlohmann::ordered_json;

JsonDocument with_values(JsonDocument tree, std::vector<Assignment> values, NetworkFiles& files,
                         Problems& problems) {
  std::ranges::stable_sort(values, {}, [](const Assignment& value) { return value.path.size(); });
  const auto below = std::ranges::find_if(values, [](const Assignment& a) { return a.path.size() > 1; });
  const auto set = [&](const Assignment& a) { set_value(tree, a.path, a.value, a.place, problems); };
  std::for_each(values.begin(), below, set);
  files.load(tree, problems);
  const bool network_failed = JsonView(tree).find("network")->is_null();
  std::for_each(below, values.end(), [&](const Assignment& value) {
    if (!network_failed || value.path[0] != "network") set(value);  // Reported by files.load().
  });
  return tree;
}

// The file of a run with only the top-level key `key`; "": with all.
JsonDocument CombinationReader::tree_with(const Combination& combination, const std::string& key,
                                          Problems& problems) {
  const JsonView file(tree_);
  JsonDocument tree(Json::object(), file.place());
  for (const JsonView& member : file.children()) {
    if (key.empty() || member.key() == key) tree.set(tree.json[member.key()], {member.key()}, member);
  }
  std::vector<Assignment> values;
  for (const Assignment& assignment : plain_) {
    if (key.empty() || assignment.path[0] == key) values.push_back(assignment);
  }
  for (const AxisValue& value : combination.values) {
    const Axis& axis = *value.axis;
    if (key.empty() || axis.path[0] == key)
      values.push_back({axis.path, axis.place, JsonDocument(value.value())});
  }
  return with_values(std::move(tree), std::move(values), files_, problems);
}

// Keys that an axis of the combination changes are completed for each run from now on.
void CombinationReader::note_keys_of(const Combination& combination) {
  for (const AxisValue& value : combination.values) {
    const Setting* setting = find_setting(top_level_settings(), value.axis->path[0]);
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
  const JsonDocument tree = tree_with(combination, setting.name, problems);
  section.json = std::make_shared<const Json>(
      complete_value(setting, {JsonView(tree).find(setting.name), tree, {}, context_, problems}));
  section.put = problems.empty() ? read_setting(setting.name, *section.json) : [](RunConfig&) {};
  return section;
}

std::optional<std::string> CombinationReader::place_of(const Combination& combination,
                                                       const std::string& path) {
  Problems ignored;
  const KeyPath parts = key_path(path);
  const JsonDocument tree = tree_with(combination, parts[0], ignored);
  const JsonView value = find_path(tree, parts);
  return value ? std::optional(to_string(value.place())) : std::nullopt;
}

// Every parameter is the program's; the rest is read once.
RunConfig CombinationReader::read_command_run(const Combination& combination, Problems& problems) {
  if (!common_) common_ = read_command_config(tree_, problems);
  RunConfig config = *common_;
  config.repeat = static_cast<std::uint32_t>(combination.repeat);
  Json params = Json::object();
  for (const AxisValue& value : combination.values) {
    params[value.axis->key] = *value.value();
    if (value.axis->key == "device") config.device = value.value().text();
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

}  // namespace sweep
