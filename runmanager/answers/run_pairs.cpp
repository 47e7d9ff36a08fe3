#include "runmanager/answers/run_pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/json/json_text.h"
#include "runmanager/config/run_name.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

bool is_completed(const SourceRun& run) { return run.record.status == RunStatus::kCompleted; }

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

// A list without repeats, in the order in which its texts were added.
class DistinctTexts {
 public:
  void add(const std::string& text) {
    if (seen_.insert(text).second) list_.push_back(text);
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<std::string> list_;
};

std::vector<std::string> values_of(const std::vector<SourceRun>& runs, const std::string& key) {
  DistinctTexts values;
  for (const SourceRun& run : runs) {
    if (is_completed(run)) values.add(setting_text(run, key));
  }
  return values.list();
}

bool has_two_values(const std::vector<SourceRun>& runs, const std::string& key, RunTest counts) {
  const auto first = std::ranges::find_if(runs, counts);
  return first != runs.end() && std::any_of(first, runs.end(), [&](const SourceRun& run) {
           return counts(run) && setting_text(run, key) != setting_text(*first, key);
         });
}

std::string chosen_key(const std::vector<SourceRun>& runs, const std::string& asked) {
  const std::vector<std::string> varying = varying_keys(runs);
  if (varying.empty())
    throw ConfigError("there is nothing to compare: no setting has two values among the completed runs");
  if (!asked.empty()) {
    if (std::find(varying.begin(), varying.end(), asked) != varying.end() ||
        values_of(runs, asked).size() > 1)
      return asked;
    throw ConfigError(fmt::format("\"{}\": has one value in all completed runs; these have several: {}{}",
                                  asked, fmt::join(varying, ", "),
                                  did_you_mean(nearest_name(asked, varying), ". Did")));
  }
  if (varying.size() == 1 || varying.front() == "device") return varying.front();
  throw ConfigError(
      fmt::format("several settings vary; say which to compare, with --by: {}", fmt::join(varying, ", ")));
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// The completed runs with one value of the key, by their other settings.
using RunsBySettings = std::map<Settings, const SourceRun*>;

Settings other_settings(const SourceRun& run, const std::vector<std::string>& keys, const std::string& key) {
  Settings settings;
  for (const std::string& name : keys) {
    if (name != key) settings.emplace_back(name, setting_text(run, name));
  }
  return settings;
}

// Whether two completed runs would have the same place.
bool are_ambiguous(const std::vector<SourceRun>& runs, const std::vector<std::string>& keys,
                   const std::string& key) {
  std::set<std::pair<std::string, Settings>> seen;
  return std::any_of(runs.begin(), runs.end(), [&](const SourceRun& run) {
    return is_completed(run) && !seen.insert({setting_text(run, key), other_settings(run, keys, key)}).second;
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
  if (key == "device" && !run.record.device.empty()) return run.record.device;
  if (const ParamValue* value = find_param(run.record.params, key)) return param_text(*value);
  const std::string text = config_text(run.record.config, key);
  return key == kRepeatKey && text.empty() ? "0" : text;
}

std::vector<std::string> differing_keys(const std::vector<SourceRun>& runs, RunTest counts) {
  DistinctTexts names;
  for (const SourceRun& run : runs) {
    for (const auto& [name, value] : run.record.params) names.add(name);
  }
  for (const std::string_view name : {std::string_view("device"), kRepeatKey, kSweepKey})
    names.add(std::string(name));
  std::vector<std::string> keys = names.list();
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

RunPairs pair_runs(const std::vector<SourceRun>& runs, std::string key) {
  RunPairs result;
  result.key = chosen_key(runs, key);
  std::vector<std::string> keys = varying_keys(runs);
  // Sweeps that are parts of one comparison, such as one on each machine, are paired across; sweeps that each
  // have all of it, within.
  std::vector<std::string> without_sweep = keys;
  std::erase(without_sweep, kSweepKey);
  if (result.key != kSweepKey && !are_ambiguous(runs, without_sweep, result.key)) keys = without_sweep;

  std::map<std::string, RunsBySettings> by_value;
  std::map<std::string, std::set<std::string>> known;  // of each value the other settings that its runs have
  for (const SourceRun& run : runs) {
    if (is_completed(run)) {
      const std::string value = setting_text(run, result.key);
      Settings settings = other_settings(run, keys, result.key);
      for (const auto& [name, text] : settings) {
        if (!text.empty()) known[value].insert(name);
      }
      by_value[value].emplace(std::move(settings), &run);
    } else {
      result.unfinished.push_back(&run);
    }
  }
  const std::vector<std::string> values = values_of(runs, result.key);
  std::set<const SourceRun*> paired;
  for (std::size_t v = 1; v < values.size(); ++v) {
    PairedValue& value = result.values.emplace_back(PairedValue{values[0], values[v]});
    std::ranges::copy_if(keys, std::back_inserter(value.of_one), [&](const std::string& name) {
      return known[values[0]].contains(name) != known[values[v]].contains(name);
    });
    const RunsBySettings& others = by_value[values[v]];
    for (const SourceRun& run : runs) {  // in the order of the sweep
      if (!is_completed(run) || setting_text(run, result.key) != values[0]) continue;
      Settings settings = other_settings(run, keys, result.key);
      const auto other = others.find(settings);
      if (other == others.end()) continue;
      value.pairs.push_back({std::move(settings), &run, other->second});
      paired.insert({&run, other->second});
    }
  }
  for (const SourceRun& run : runs) {
    if (is_completed(run) && !paired.contains(&run)) result.alone.push_back(&run);
  }
  return result;
}

}  // namespace sweep
