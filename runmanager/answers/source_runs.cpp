#include "runmanager/answers/source_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/json/json_text.h"
#include "runmanager/config/params.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_metric.h"

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

// Numbers before texts.
using SortValue = std::variant<double, std::string>;

std::optional<SortValue> param_value(const RunRecord& run, const std::string& key) {
  const ParamValue* value = find_param(run.params, key);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  if (const auto number = param_number(*value)) return *number;
  return std::get<bool>(*value) ? 1.0 : 0.0;
}

std::optional<SortValue> metric_value(const RunRecord& run, const Goal& goal) {
  const std::optional<double> value = run_metric(run, *goal.metric);
  if (!value || std::isnan(*value)) return std::nullopt;
  return goal.cost(*value);
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

void sort_runs(std::vector<RunRecord>& runs, const std::string& key, const Goals& goals) {
  std::vector<const RunRecord*> all;
  for (const RunRecord& run : runs) all.push_back(&run);
  const std::vector<std::string> metrics = metric_names(all);
  const bool is_metric = std::ranges::find(metrics, key) != metrics.end();
  std::vector<std::string> known;
  std::optional<std::string> param;
  for (const std::string& of_param : param_keys(runs)) {
    known.push_back(param_title(of_param, metrics));
    if (known.back() == key || std::string(kParamPrefix) + of_param == key) param = of_param;
  }
  if (!param && !is_metric) {
    known.insert(known.end(), metrics.begin(), metrics.end());
    throw ConfigError(fmt::format("no run has \"{}\" to sort by, there are: {}{}", key,
                                  fmt::join(known, ", "), did_you_mean(nearest_key(key, known), "; did")));
  }
  const Goal by = goal_for(metric_named(key), goals);
  std::vector<std::pair<std::optional<SortValue>, RunRecord>> keyed;
  for (RunRecord& run : runs) {
    auto value = param ? param_value(run, *param) : metric_value(run, by);
    keyed.emplace_back(std::move(value), std::move(run));
  }
  std::ranges::stable_sort(keyed, [](const auto& a, const auto& b) {
    if (!a.first || !b.first) return a.first.has_value() && !b.first;
    return *a.first < *b.first;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = std::move(keyed[i].second);
}

}  // namespace sweep
