#include "runmanager/answers/source_runs.h"

#include <algorithm>

#include "core/json/json_text.h"
#include "runmanager/config/params.h"
#include "runmanager/records/recorded_config.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& value) {
  if (value.is_object() && value.contains("name")) return json_text(value.at("name"));
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return param_text(value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A sweep file may give arguments of an optimizer without its name in front.
std::string config_text(const Json& config, const std::string& key) {
  const Json* value = find_at(config, key);
  if (value == nullptr) value = find_at(config, "optimizer." + key);
  return value == nullptr ? "" : json_text(*value);
}

bool has_two_values(const std::vector<SourceRun>& runs, const std::string& key, RunTest counts) {
  const auto first = std::ranges::find_if(runs, counts);
  return first != runs.end() && std::any_of(first, runs.end(), [&](const SourceRun& run) {
           return counts(run) && setting_text(run, key) != setting_text(*first, key);
         });
}

}  // namespace

std::vector<SourceRun> source_runs(const std::filesystem::path& directory, std::vector<RunRecord> records) {
  std::string source = directory.string();
  while (source.size() > 1 && source.ends_with('/')) source.pop_back();
  std::vector<SourceRun> runs;
  for (RunRecord& record : records) runs.push_back({source, std::move(record)});
  return runs;
}

std::string setting_text(const SourceRun& run, const std::string& key) {
  if (key == kSweepKey) return run.source;
  const ParamValue* const value = find_param(run.record.params, key);
  // Programs may mean something else by it.
  const bool is_device = key == "device" && (value == nullptr || known_device(param_text(*value)));
  if (is_device && !run.record.device.empty()) return run.record.device;
  if (value != nullptr) return param_text(*value);
  const std::string text = config_text(run.record.config, key);
  return key == kRepeatKey && text.empty() ? "0" : text;
}

bool is_completed(const SourceRun& run) { return run.record.status == RunStatus::kCompleted; }

std::vector<std::string> differing_keys(const std::vector<SourceRun>& runs, RunTest counts) {
  std::vector<std::string> keys;
  const auto add = [&keys](std::string_view key) {
    if (std::ranges::find(keys, key) == keys.end()) keys.emplace_back(key);
  };
  for (const SourceRun& run : runs) {
    for (const auto& [name, value] : run.record.params) add(name);
  }
  for (const std::string_view name : {std::string_view("device"), kRepeatKey, kSweepKey}) add(name);
  std::erase_if(keys, [&](const std::string& key) { return !has_two_values(runs, key, counts); });
  return keys;
}

std::vector<std::string> varying_keys(const std::vector<SourceRun>& runs) {
  std::vector<std::string> keys = differing_keys(runs, is_completed);
  // An imported run does not say which device trained it.
  const bool has_devices = std::ranges::all_of(
      runs, [](const SourceRun& run) { return !is_completed(run) || !setting_text(run, "device").empty(); });
  if (std::erase(keys, "device") > 0 && has_devices) keys.insert(keys.begin(), "device");
  return keys;
}

}  // namespace sweep
